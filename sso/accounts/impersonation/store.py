"""The visits of administrators to the accounts of users: a link that works once, then a session for some minutes."""

from datetime import datetime

from msgspec import Struct

from sso.accounts.model import User
from sso.core.ids import digest, record_id, secret_token
from sso.db.statement import Statement
from sso.db.transaction import Row, Runner

_CREATE = Statement(
    """INSERT INTO impersonations (id, link_digest, user_id, user_valid_from, impersonator, impersonator_valid_from,
        operator, may_write, minutes, expires)
    SELECT :id, CAST(:link_digest AS bytea), u.user_id, u.valid_from, CAST(:impersonator AS text),
        (SELECT valid_from FROM users WHERE user_id = CAST(:impersonator AS text)), :operator, :may_write, :minutes,
        now() + make_interval(secs => :link_s)
    FROM users u WHERE u.user_id = :user_id"""
)
# Both users must be as they were when the link was made: not disabled, banned or signed out everywhere since.
_VALID = """u.user_id = p.user_id AND u.valid_from = p.user_valid_from AND NOT u.disabled
        AND (p.impersonator IS NULL OR EXISTS (SELECT FROM users i WHERE i.user_id = p.impersonator
            AND i.valid_from = p.impersonator_valid_from AND NOT i.disabled))"""
_VISIT = "u.*, p.id, p.impersonator, p.operator, p.may_write, p.minutes, p.started"
_FIND_LINK = Statement(
    f"""SELECT {_VISIT} FROM impersonations p JOIN users u ON {_VALID}
    WHERE p.link_digest = :digest AND p.expires > now()"""
)
# Of several requests with the same link, the one that removes its digest wins.
_START = Statement(
    f"""UPDATE impersonations p SET link_digest = NULL, digest = :digest, started = now(),
        expires = now() + make_interval(mins => p.minutes)
    FROM users u WHERE p.link_digest = :link_digest AND p.expires > now() AND {_VALID} RETURNING {_VISIT}"""
)
_FIND = Statement(
    f"""SELECT {_VISIT} FROM impersonations p JOIN users u ON {_VALID} WHERE p.digest = :digest AND p.expires > now()"""
)
_END = Statement("DELETE FROM impersonations WHERE id = :id RETURNING id")


class Impersonation(Struct, frozen=True):
    id: str
    user: User  # whose account is shown
    impersonator: str | None  # the administrator; None for the operator of the command line
    operator: str
    may_write: bool
    minutes: int
    started: datetime | None  # None: the link was not used yet


async def create_link(
    tx: Runner, user_id: str, impersonator: str | None, operator: str, *, may_write: bool, minutes: int, link_s: int
) -> str:
    """Returns the secret of the link."""
    secret = secret_token()
    await tx.value(
        _CREATE,
        id=record_id(),
        link_digest=digest(secret),
        user_id=user_id,
        impersonator=impersonator,
        operator=operator,
        may_write=may_write,
        minutes=minutes,
        link_s=float(link_s),
    )
    return secret


async def find_link(runner: Runner, secret: str) -> Impersonation | None:
    """Returns what a link would start, or None if it was used, has expired or does not exist."""
    return _impersonation(await runner.row(_FIND_LINK, digest=digest(secret)))


async def start(tx: Runner, link_secret: str, secret: str) -> Impersonation | None:
    """Uses the link up. The visit has the given secret. Of several concurrent calls, one gets the visit."""
    return _impersonation(await tx.row(_START, link_digest=digest(link_secret), digest=digest(secret)))


async def find(runner: Runner, secret: str) -> Impersonation | None:
    """Returns the visit, unless its time is over, or one of both users was revoked or disabled."""
    return _impersonation(await runner.row(_FIND, digest=digest(secret)))


async def end(tx: Runner, impersonation_id: str) -> bool:
    """Returns False if it has ended already."""
    return await tx.value(_END, id=impersonation_id) is not None


def _impersonation(row: Row | None) -> Impersonation | None:
    if row is None:
        return None
    return Impersonation(
        id=row["id"],
        user=User.from_row(row),
        impersonator=row["impersonator"],
        operator=row["operator"],
        may_write=row["may_write"],
        minutes=row["minutes"],
        started=row["started"],
    )
