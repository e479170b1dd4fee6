"""The fields of a user, as administrators see and change them in the management API and in documents."""

import re
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from sso.accounts.model import User, stored_login
from sso.core.mail_address import check_mail_address
from sso.core.records import RecordModel, Tag, Text, check_user_id, matching

BASE32 = re.compile(r"[A-Z2-7]{16,128}", re.ASCII)

Login = Annotated[str, AfterValidator(stored_login), AfterValidator(check_mail_address)]


class UserChanges(RecordModel):
    """The fields of a user, each of which may be missing."""

    user_id: Annotated[str, AfterValidator(check_user_id)] | None = None
    login: Login | None = None
    password: Annotated[str, Field(min_length=1, max_length=1024)] | None = None
    nick: Text | None = None
    country: Text | None = None
    lang: Text | None = None
    level: Text | None = None
    tags: list[Tag] | None = None
    purchases: list[Tag] | None = None
    email_verified: bool | None = None
    phone: Text | None = None
    phone_verified: bool | None = None
    totp_secret: Annotated[str, matching(BASE32, "base32 of at least 16 characters")] | None = None
    email_2fa: bool | None = None
    meta: dict[str, Any] | None = None
    disabled: bool | None = None


class UserRecord(UserChanges):
    login: Login


def exportable_fields(user: User) -> dict[str, Any]:
    """Returns the fields that may be shown and exported: no password hash and no secret."""
    names = (
        "user_id", "login", "nick", "country", "lang", "level", "tags", "purchases", "email_verified", "phone",
        "phone_verified", "email_2fa", "meta",
    )  # fmt: skip
    fields = {name: getattr(user, name) for name in names}
    return fields | {"tags": list(user.tags), "purchases": list(user.purchases)}


def exported_user(user: User) -> dict[str, Any]:
    """Returns the record for a document. A closed account is disabled there, so that nothing revives it elsewhere."""
    return exportable_fields(user) | ({"disabled": True} if user.disabled else {})
