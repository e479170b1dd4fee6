"""A change of the assurance of a browser session: its user has signed in again with more or fewer factors."""

import orjson

from sso.accounts.authentication_context import ACR_VALUES, acr_of

NAMESPACE = "urn:sso:acr"


def assurance_change(old_auth: str | None, new_auth: str) -> str | None:
    """Returns the data of the signal, as JSON. None if the assurance is the same, or no session is continued."""
    if old_auth is None or (before := acr_of(old_auth)) == (after := acr_of(new_auth)):
        return None
    is_more = ACR_VALUES.index(after) > ACR_VALUES.index(before)
    data = {
        "namespace": NAMESPACE,
        "current_level": after,
        "previous_level": before,
        "change_direction": "increase" if is_more else "decrease",
        "reason_admin": {"en": "The user has signed in again"},
    }
    return orjson.dumps(data).decode()
