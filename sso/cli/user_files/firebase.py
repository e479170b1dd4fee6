"""Users of Firebase: the file of ``firebase auth:export users.json``, and the parameters of its password hashes."""

import json
import re
from pathlib import Path
from typing import TextIO

from msgspec import Struct

from sso.cli.context import CommandFailure
from sso.cli.user_files.json_stream import JsonStream
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
from sso.cli.user_files.reading import convert_each
from sso.core.password_hashes.model import UnusableHash, decode_base64
from sso.core.password_hashes.scrypt_hash import firebase_text

OWN_PROVIDERS = frozenset(("password", "phone"))
NO_PARAMETERS = "the password was not imported: --hash-config is missing"
_MEMBER = re.compile(r"\"?(\w+)\"?\s*:\s*\"?([^\s\",]+)\"?")


class HashParameters(Struct, frozen=True):
    """The parameters that the Firebase console shows under Authentication, "Password hash parameters"."""

    signer_key: bytes
    salt_separator: bytes
    rounds: int
    memory_cost: int


def read_hash_parameters(path: Path) -> HashParameters:
    """Reads ``hash_config { … }`` as the console shows it, or the same members as JSON. Raises CommandFailure."""
    try:
        members = dict(_MEMBER.findall(path.read_text()))
        if members.get("algorithm", "SCRYPT") != "SCRYPT":
            raise CommandFailure(f"{path}: expected the algorithm SCRYPT")
        return HashParameters(
            decode_base64(members["base64_signer_key"], "signer key", minimum=16),
            decode_base64(members["base64_salt_separator"], "salt separator"),
            int(members["rounds"]),
            int(members["mem_cost"]),
        )
    except OSError as error:
        raise CommandFailure(f"cannot read {path}: {error.strerror}") from None
    except (KeyError, ValueError):
        expected = "base64_signer_key, base64_salt_separator, rounds and mem_cost"
        raise CommandFailure(f"{path}: expected the hash parameters of Firebase: {expected}") from None


def read_firebase(file: TextIO, parameters: HashParameters | None) -> Entries:
    return convert_each(JsonStream(file).users(), lambda user: _user(user, parameters))


def _user(user: JsonObject, parameters: HashParameters | None) -> SourceUser:
    providers = objects_of(user, "providerUserInfo")
    advice = "" if providers or text_of(user, "phoneNumber") else "; anonymous users come back as guests"
    login = require_address(text_of(user, "email"), advice)
    phone = text_of(user, "phoneNumber")
    source = SourceUser(
        {
            "login": login,
            "nick": nickname(login, text_of(user, "displayName")),
            "email_verified": user.get("emailVerified") is True,
            "disabled": user.get("disabled") is True,
            **({"phone": phone, "phone_verified": True} if phone else {}),
        },
        text_of(user, "localId"),
        _roles(text_of(user, "customAttributes")),
        identities=[
            {
                "provider": text_of(item, "providerId"),
                "subject": text_of(item, "rawId"),
                "name": text_of(item, "displayName"),
            }
            for item in providers
            if text_of(item, "providerId") not in OWN_PROVIDERS
        ],
    )
    if objects_of(user, "mfaInfo"):
        source.notes.append("the second factor was not imported")
    if text_of(user, "passwordHash"):
        _add_password(source, user, parameters)
    return source


def _add_password(source: SourceUser, user: JsonObject, parameters: HashParameters | None) -> None:
    if parameters is None:
        source.notes.append(NO_PARAMETERS)
        return
    try:
        source.fields["password_hash"] = firebase_text(
            parameters.memory_cost,
            parameters.rounds,
            parameters.signer_key,
            parameters.salt_separator,
            decode_base64(text_of(user, "salt"), "salt"),
            decode_base64(text_of(user, "passwordHash"), "digest"),
        )
    except UnusableHash as error:
        source.notes.append(f"the password was not imported: {error}")


def _roles(claims: str) -> list[str]:
    """Returns the custom claims that are true, and those in ``role`` and ``roles``."""
    try:
        values = json.loads(claims) if claims else {}
    except (ValueError, RecursionError):
        return []
    if not isinstance(values, dict):
        return []
    named = [values["role"]] if isinstance(values.get("role"), str) else []
    return [*(name for name, value in values.items() if value is True), *named, *names_of(values, "roles")]
