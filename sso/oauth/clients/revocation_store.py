"""Revokes what a client was granted: its grants, codes, pending authorizations, and its tokens as a service."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple, TypeVar

from sso.db.database import Database
from sso.db.known_users import REMEMBER_APPLICATIONS, delete_grants
from sso.db.statement import Statement
from sso.db.transaction import Runner, Transaction
from sso.oauth.clients.redirect_uris import is_redirect_uri
from sso.oauth.model import Client, is_client_id

T = TypeVar("T")

MAX_USUAL_USERS = 10_000  # of a client, for a change in a usual transaction: deleting their grants takes half a second
REVOCATION_S = 600  # for a change of a client with more
PORTION = 5000  # rows that a transaction deletes before such a change

# The tables with rows that a client was granted, or is about to be granted.
_GRANT_TABLES = ("oauth_requests", "oauth_codes", "oauth_grants")


def _delete_granted(table: str, condition: str) -> Statement:
    if table == "oauth_grants":
        # Rows are locked in key order, as by the statements that refresh tokens, to avoid deadlocks.
        locked = f"SELECT id FROM oauth_grants WHERE {condition} ORDER BY id FOR UPDATE"
        return Statement(delete_grants(f"WHERE g.id = ANY (ARRAY({locked}))"))
    return Statement(f"DELETE FROM {table} WHERE {condition}")


_REVOKE = tuple(
    _delete_granted(table, "client_id = :client_id")
    for table in (
        "game_sessions",  # sessions of its devices first: their grants are issued under a lock
        "oauth_pushed_requests",
        *_GRANT_TABLES,
        "oauth_service_tokens",
    )
)
_REVOKE_EXCHANGED = _delete_granted("oauth_grants", "client_id = :client_id AND cardinality(act) > 0")
_REMEMBER_APPLICATION = Statement(
    f"""WITH deleted AS (
        SELECT user_id, client_id FROM oauth_grants WHERE client_id = :client_id
        UNION SELECT user_id, client_id FROM oauth_consents WHERE client_id = :client_id
    ), {REMEMBER_APPLICATIONS}
    SELECT count(*) FROM deleted"""
)
# The users, and the sign-ins of users, of which a client may have many.
_USER_TABLES = (
    "oauth_grants",
    "oauth_consents",
    "oauth_site_sessions",
    "signal_subjects JOIN signal_streams USING (stream_id)",
)
_HAS_MANY_USERS = Statement(
    "SELECT "
    + " OR ".join(f"EXISTS (SELECT FROM {table} WHERE client_id = :client_id OFFSET :limit)" for table in _USER_TABLES)
)
_ALLOW_LONG_STATEMENTS = Statement(f"SELECT set_config('statement_timeout', '{REVOCATION_S}s', true)")


class _Portions(NamedTuple):
    page: Statement  # the next keys, in their order
    delete: Statement


def _portions(table: str, key: str, delete: str) -> _Portions:
    page = f"SELECT DISTINCT {key} AS key FROM {table} WHERE client_id = :client_id AND {key} > :after"
    return _Portions(Statement(f"{page} ORDER BY 1 LIMIT {PORTION}"), Statement(delete))


_KEYS = "ANY (CAST(:keys AS text[]))"
_GRANTS = _portions(
    "oauth_grants",
    "id",
    delete_grants(
        f"""WHERE g.client_id = :client_id AND g.id = ANY (ARRAY(
            SELECT id FROM oauth_grants WHERE id = {_KEYS} ORDER BY id FOR UPDATE
        ))"""
    ),
)
# What else ends with a client that is deleted. If it is not deleted after all, its streams still tell nothing of the
# users that they have excluded.
_ENDING_WITH_CLIENT = (
    _portions(
        "oauth_consents",
        "user_id",
        f"""WITH deleted AS (
            DELETE FROM oauth_consents WHERE client_id = :client_id AND user_id = {_KEYS} RETURNING user_id, client_id
        ), {REMEMBER_APPLICATIONS}
        SELECT count(*) FROM deleted""",
    ),
    _portions(
        "oauth_site_sessions",
        "sid",
        f"DELETE FROM oauth_site_sessions WHERE client_id = :client_id AND sid = {_KEYS}",
    ),
    _portions(
        "signal_streams JOIN signal_subjects USING (stream_id)",
        "user_id",
        f"""DELETE FROM signal_subjects WHERE user_id = {_KEYS} AND NOT excluded
            AND stream_id = ANY (ARRAY(SELECT stream_id FROM signal_streams WHERE client_id = :client_id))""",
    ),
)
_LIST_GRANTED_URIS = Statement(
    " UNION ".join(f"SELECT redirect_uri FROM {table} WHERE client_id = :client_id" for table in _GRANT_TABLES)
)
_REVOKE_AT_URIS = tuple(
    _delete_granted(table, "client_id = :client_id AND redirect_uri = ANY(CAST(:uris AS text[]))")
    for table in _GRANT_TABLES
)


async def change_client(database: Database, client_id: str, work: Callable[[Transaction], Awaitable[T]]) -> T:
    """Returns ``work(tx)``, a change of the client that may revoke everything that it was granted.

    Of a client with many users, it is a long transaction, on a connection that is kept for documents and evaluations.
    """
    if not await _has_many_users(database, client_id):
        return await database.transaction(work)

    async def long_work(tx: Transaction) -> T:
        await tx.value(_ALLOW_LONG_STATEMENTS)
        return await work(tx)

    with database.shares.limit_document(("client", client_id)):
        return await database.long_transaction(REVOCATION_S, long_work)


async def revoke_in_portions(
    database: Database, client_id: str, check: Callable[[Transaction], Awaitable[object]], *, deletes: bool
) -> None:
    """Prepares a change that disables a client or deletes it. Does nothing for a client without many users.

    The change itself locks the client, for which sign-outs and bans of its users wait. Without a preparation that takes
    too long for them. One that is interrupted has ended sign-ins of users and changed nothing else.

    ``check`` raises the error of a change that will be refused.
    """
    if not await _has_many_users(database, client_id):
        return
    with database.shares.limit_document(("client", client_id)):
        await database.transaction(check)
        for portions in (_GRANTS, *(_ENDING_WITH_CLIENT if deletes else ())):
            after: str | None = ""
            while after is not None:
                after = await database.long_transaction(REVOCATION_S, _delete_portion, portions, client_id, after)


async def _delete_portion(tx: Transaction, portions: _Portions, client_id: str, after: str) -> str | None:
    """Returns the last key of the portion, None if no more rows follow."""
    await tx.value(_ALLOW_LONG_STATEMENTS)
    keys = [row["key"] for row in await tx.rows(portions.page, client_id=client_id, after=after)]
    if keys:
        await tx.value(portions.delete, client_id=client_id, keys=keys)
    return keys[-1] if len(keys) == PORTION else None


async def _has_many_users(database: Database, client_id: str) -> bool:
    if not is_client_id(client_id):
        return False
    return bool(await database.value(_HAS_MANY_USERS, client_id=client_id, limit=MAX_USUAL_USERS))


async def revoke_grants(tx: Runner, client_id: str) -> None:
    """Revokes all grants of the client, its codes, its pending authorizations and its tokens as a service.

    The caller holds the client's row ``FOR UPDATE``, so that no token is issued concurrently.
    """
    for statement in _REVOKE:
        await tx.value(statement, client_id=client_id)


async def remember_application(tx: Runner, client_id: str) -> None:
    """Remembers which users have used the application of a client that is about to be deleted, or to get another one.

    The caller has locked the client, so that no grant is created concurrently.
    """
    await tx.value(_REMEMBER_APPLICATION, client_id=client_id)


async def revoke_exchanged_tokens(tx: Runner, client_id: str) -> None:
    """Revokes the tokens that the client has exchanged, and those that others have exchanged these for.

    The caller holds the client's row ``FOR UPDATE``, so that no token is exchanged concurrently.
    """
    await tx.value(_REVOKE_EXCHANGED, client_id=client_id)


async def revoke_grants_at_removed_uris(tx: Runner, old: Client, new: Client) -> None:
    """Revokes the grants, codes and pending authorizations whose redirect URI no longer belongs to the client.

    The caller holds the client's row ``FOR UPDATE``, so no code or grant is created concurrently.
    """
    rows = await tx.rows(_LIST_GRANTED_URIS, client_id=new.client_id)
    uris = [row["redirect_uri"] for row in rows if row["redirect_uri"]]  # the grant of a device has none
    removed = [uri for uri in uris if not _still_has(uri, old, new)]
    if removed:
        for statement in _REVOKE_AT_URIS:
            await tx.value(statement, client_id=new.client_id, uris=removed)


def _still_has(uri: str, old: Client, new: Client) -> bool:
    if is_redirect_uri(uri, new.redirect_hosts, new.redirect_uris):
        return True
    # A URI that did not belong to the old client either was accepted because this service runs without TLS and so
    # allows http for every host. Check it by that rule.
    needs_allow_http = not is_redirect_uri(uri, old.redirect_hosts, old.redirect_uris)
    return needs_allow_http and is_redirect_uri(uri, new.redirect_hosts, new.redirect_uris, allow_http=True)
