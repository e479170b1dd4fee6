"""Users of Auth0: JSON Lines of an export job, and of the export of password hashes by its support."""

from typing import TextIO

from sso.cli.user_files.model import (
    Entries,
    JsonObject,
    SourceUser,
    names_of,
    nickname,
    objects_of,
    require_address,
    text_of,
)
from sso.cli.user_files.reading import convert_each, json_lines

DATABASE = "auth0"  # the provider of users who have a password


def read_auth0(file: TextIO) -> Entries:
    return convert_each(json_lines(file), _user)


def _user(user: JsonObject) -> SourceUser:
    login = require_address(text_of(user, "email", "Email"))
    verified = user.get("email_verified", user.get("Email Verified"))
    phone = text_of(user, "phone_number")
    fields = {
        "login": login,
        "nick": nickname(login, text_of(user, "username"), text_of(user, "nickname"), text_of(user, "Nickname")),
        "email_verified": verified is True or verified == "true",
        "disabled": user.get("blocked") is True,
        **({"phone": phone, "phone_verified": user.get("phone_verified") is True} if phone else {}),
    }
    if password_hash := text_of(user, "passwordHash") or _custom_hash(user):
        fields["password_hash"] = password_hash
    metadata = user.get("app_metadata")
    source = SourceUser(fields, _source_id(user), names_of(metadata, "roles") if isinstance(metadata, dict) else [])
    for identity in objects_of(user, "identities"):
        subject = identity.get("user_id")
        if identity.get("provider") != DATABASE and isinstance(subject, str | int):
            source.identities.append({"provider": text_of(identity, "provider", "connection"), "subject": str(subject)})
    if user.get("multifactor") or user.get("mfa_factors"):
        source.notes.append("the second factor was not imported")
    return source


def _source_id(user: JsonObject) -> str:
    """The export of hashes has the id of the database in place of ``auth0|ID``."""
    inner = user.get("_id")
    object_id = text_of(inner, "$oid") if isinstance(inner, dict) else ""
    return text_of(user, "user_id", "Id") or (f"{DATABASE}|{object_id}" if object_id else "")


def _custom_hash(user: JsonObject) -> str:
    """Files that were made for an import into Auth0 have the hash in an object."""
    custom = user.get("custom_password_hash")
    inner = custom.get("hash") if isinstance(custom, dict) else None
    return text_of(inner, "value") if isinstance(inner, dict) else ""
