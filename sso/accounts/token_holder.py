"""The user of a user JWT, as far as the validity of the JWT depends on the user."""

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from sso.core.jwt import InvalidToken


class TokenHolder(Protocol):
    @property
    def disabled(self) -> bool: ...

    @property
    def valid_from(self) -> int: ...


# Whether the sign-in of a JWT has not ended, as SQL. A JWT of an older version names no sign-in. One without a row has
# ended: the oldest ones beyond the limit of a user are deleted. Otherwise the row is kept while a JWT may be accepted.
# The subquery finds one row by its key; EXISTS might be planned as a scan of all sign-ins.
IS_SIGNED_IN = "coalesce((SELECT NOT s.ended FROM sign_ins s WHERE s.id = item.sign_in), item.sign_in = '')"
# Returns the user with an id, None if there is none or if the sign-in with the other id has ended.
FindHolder = Callable[[str, str], Awaitable[TokenHolder | None]]


def issued_after(valid_from: int, iat: int) -> dict[str, int]:
    """Returns the claims that make a new JWT of a valid user valid.

    Each revocation advances ``valid_from`` by at least a second, so after several within a second it is later than the
    time. It then counts revocations: a JWT that names the last one was issued after it.
    """
    return {"rev": valid_from} if iat < valid_from else {}


def check_holder(claims: dict[str, Any], holder: TokenHolder | None) -> None:
    """Raises InvalidToken if the user is disabled, or was revoked after the JWT was issued."""
    if holder is None or holder.disabled or max(claims["iat"], claims.get("rev", 0)) < holder.valid_from:
        raise InvalidToken("void")
