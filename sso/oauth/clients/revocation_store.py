"""Revokes what a client was granted: its grants, codes, pending authorizations, and its tokens as a service."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from sso.db.database import Database
from sso.db.known_users import REMEMBER_APPLICATIONS, delete_grants
from sso.db.statement import Statement
from sso.db.transaction import Runner, Transaction
from sso.oauth.clients.redirect_uris import is_redirect_uri
from sso.oauth.model import Client, is_client_id

T = TypeVar("T")

MAX_USUAL_USERS = 10_000  # of a client, for a change in a usual transaction: deleting their grants takes half a second
REVOCATION_S = 600  # for a change of a client with more

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
    if not is_client_id(client_id) or not await database.value(
        _HAS_MANY_USERS, client_id=client_id, limit=MAX_USUAL_USERS
    ):
        return await database.transaction(work)

    async def long_work(tx: Transaction) -> T:
        await tx.value(_ALLOW_LONG_STATEMENTS)
        return await work(tx)

    with database.shares.limit_document(("client", client_id)):
        return await database.long_transaction(REVOCATION_S, long_work)


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
