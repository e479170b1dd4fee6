"""What an import changes of a user who exists.

Whoever registered the address here may not be the person who owned it at the other service, and tags may grant
permissions. So an import changes the profile, and gives and grants nothing; what it leaves out is in the notes.
"""

from typing import Any

from sso.accounts.model import User
from sso.accounts.user_record import UserChanges
from sso.state.imported_user import ImportedUser

UPDATED = ("nick", "country", "lang")
NOT_UPDATED = ("email_verified", "level", "tags", "purchases", "phone", "phone_verified", "email_2fa")
NOT_VERIFIED = "the password was left out, because the address is not verified both here and there"
NO_SECOND_FACTOR = "the password was left out, because it had a second factor there and the user has none here"


def changes_of(existing: User, user: ImportedUser) -> UserChanges:
    """Returns the fields to change. Members of ``meta`` that the import does not have stay."""
    fields: dict[str, Any] = user.model_dump(include=set(UPDATED), exclude_none=True)
    if user.meta is not None:
        fields["meta"] = {**existing.meta, **user.meta}
    if user.disabled and not existing.disabled:
        fields["disabled"] = True
    return UserChanges(**fields)


def left_out(existing: User, user: ImportedUser) -> list[str]:
    """Returns a note for each field that the import has and does not change."""
    names = [name for name in NOT_UPDATED if _differs(getattr(user, name), getattr(existing, name))]
    if user.disabled is False and existing.disabled:
        names.append("disabled")
    if user.totp_secret is not None and existing.totp_sealed is None:
        names.append("totp_secret")
    names += [name for name in ("identities", "roles") if getattr(user, name)]
    return [f"{name} of a user who exists was not changed" for name in names]


def password_problem(existing: User, user: ImportedUser) -> str:
    """Returns why the user, who has no password, does not get that of the other service, or an empty text."""
    if not (user.email_verified and existing.email_verified):
        return NOT_VERIFIED
    return NO_SECOND_FACTOR if user.totp_secret is not None and not existing.second_factors else ""


def _differs(value: Any, existing: Any) -> bool:
    return value is not None and (tuple(value) if isinstance(value, list) else value) != existing
