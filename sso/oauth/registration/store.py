"""Clients that registered themselves, and the tokens that allow a registration, in the database."""

from datetime import datetime

from msgspec import Struct

from sso.core.ids import digest
from sso.db.statement import Statement
from sso.db.transaction import Row, Runner, Transaction
from sso.oauth.model import is_client_id

# Registrations that add a waiting client run one after the other, so that the limit holds.
_LOCK_WAITING = Statement("SELECT pg_advisory_xact_lock(hashtextextended('waiting oauth clients', 0))")
_COUNT_WAITING = Statement("SELECT count(*) FROM oauth_clients WHERE NOT approved")
_FIND = Statement(
    """SELECT * FROM oauth_clients WHERE client_id = :client_id AND registration_digest = :digest FOR UPDATE"""
)
_LIST_OWN_NAMES = Statement(
    "SELECT name, client_id, first_party FROM oauth_clients WHERE registered_by = '' ORDER BY client_id"
)
# Of concurrent registrations, each waits for the row, so no more succeed than the token has uses.
_USE_TOKEN = Statement(
    """UPDATE oauth_registration_tokens SET uses_left = uses_left - 1
    WHERE digest = :digest AND uses_left > 0 AND expires > now() RETURNING id"""
)
_IS_USABLE = Statement(
    "SELECT true FROM oauth_registration_tokens WHERE digest = :digest AND uses_left > 0 AND expires > now()"
)
_ADD_TOKEN = Statement(
    """INSERT INTO oauth_registration_tokens (digest, uses, uses_left, expires)
    VALUES (:digest, :uses, :uses, now() + make_interval(days => :days)) RETURNING *"""
)
_LIST_TOKENS = Statement(
    """SELECT * FROM oauth_registration_tokens WHERE id > :after AND expires > now() AND uses_left > 0
    ORDER BY id LIMIT :limit"""
)
_DELETE_TOKEN = Statement(
    """DELETE FROM oauth_registration_tokens WHERE id = :token_id AND expires > now() AND uses_left > 0 RETURNING *"""
)


class RegistrationToken(Struct, frozen=True):
    """An initial access token. The secret itself is not stored."""

    id: str
    uses: int
    uses_left: int
    created: datetime
    expires: datetime


async def count_waiting(tx: Transaction) -> int:
    """Returns how many clients wait for approval. Others that count them wait until the transaction ends."""
    await tx.value(_LOCK_WAITING)
    count: int = await tx.value(_COUNT_WAITING)
    return count


async def lock_registered(tx: Transaction, client_id: str, token: str) -> Row | None:
    """Returns the locked row of the client whose registration access token this is."""
    return await tx.row(_FIND, client_id=client_id, digest=digest(token)) if is_client_id(client_id) else None


async def list_own_names(runner: Runner) -> list[Row]:
    """Returns the names and ids of the clients that administrators have added."""
    return await runner.rows(_LIST_OWN_NAMES)


async def is_usable_token(runner: Runner, token: str) -> bool:
    return await runner.value(_IS_USABLE, digest=digest(token)) is not None


async def use_token(tx: Transaction, token: str) -> int | None:
    """Uses the token once and returns its id; None if it does not exist, has expired or is used up."""
    token_id: int | None = await tx.value(_USE_TOKEN, digest=digest(token))
    return token_id


async def add_token(tx: Transaction, token: str, uses: int, days: int) -> RegistrationToken:
    row = await tx.row(_ADD_TOKEN, digest=digest(token), uses=uses, days=days)
    assert row is not None
    return _token(row)


async def list_tokens(runner: Runner, after: int, limit: int) -> list[RegistrationToken]:
    """Returns the tokens that can still be used, the oldest first."""
    return [_token(row) for row in await runner.rows(_LIST_TOKENS, after=after, limit=limit)]


async def delete_token(tx: Transaction, token_id: int) -> RegistrationToken | None:
    row = await tx.row(_DELETE_TOKEN, token_id=token_id)
    return _token(row) if row else None


def _token(row: Row) -> RegistrationToken:
    return RegistrationToken(str(row["id"]), row["uses"], row["uses_left"], row["created"], row["expires"])
