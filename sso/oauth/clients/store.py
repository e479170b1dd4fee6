"""Clients and their secrets in the database. Each method is one transaction."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from sso.change_stream.events import Change, ChangeType, record_changes
from sso.core.encryption import Keyring, column_purpose
from sso.db.batch.statement import BatchStatement
from sso.db.batch.statement_batch import Batch
from sso.db.database import Database
from sso.db.row_statements import insert_statement, update_statement
from sso.db.sorted_pages import Page, PageQuery, SortColumn, SortedPages
from sso.db.statement import Statement
from sso.db.transaction import Row, Runner, Transaction
from sso.oauth.clients.authentication import STRICT_METHODS, ClientCredentials, authenticate_client
from sso.oauth.clients.revocation_store import remember_application, revoke_grants
from sso.oauth.model import Client, is_client_id
from sso.oauth.recording.observation import note_client

# ``version`` is another one after each change: the transaction that wrote the row.
_FIND = BatchStatement(
    """SELECT item.n, c.*, CAST(c.xmin AS text) AS version
    FROM {items} JOIN oauth_clients c ON c.client_id = item.client_id""",
    columns={"client_id": "text"},
)
_LIST = Statement("SELECT * FROM oauth_clients ORDER BY client_id")
_READ = Statement("SELECT * FROM oauth_clients WHERE client_id = :client_id")
_LOCK = Statement("SELECT * FROM oauth_clients WHERE client_id = :client_id FOR UPDATE")
_PAGES = SortedPages(
    """SELECT *, {value} FROM oauth_clients
    WHERE {after} AND (CAST(:disabled AS bool) IS NULL OR disabled = :disabled)
        AND (CAST(:approved AS bool) IS NULL OR approved = :approved)
        AND (CAST(:registered AS bool) IS NULL OR (registered_by <> '') = :registered)
        AND (strpos(lower(client_id), lower(:search)) > 0 OR strpos(lower(name), lower(:search)) > 0)
    ORDER BY {order} LIMIT :limit""",
    SortColumn('client_id COLLATE "C"', is_unique=True),
    {
        "name": SortColumn("lower(coalesce(nullif(name, ''), client_id)) COLLATE \"C\""),
        "created": SortColumn("created", "time"),
    },
)
# The previous secret ends at its own end or after the overlap; without either, when the rotation is finished.
_ADD_SECRET = Statement(
    """UPDATE oauth_clients SET secret_sealed = :new, secret_expires = now() + make_interval(secs => :lifetime_s),
        second_sealed = :previous,
        second_expires = least(secret_expires, now() + make_interval(secs => :overlap_s))
    WHERE client_id = :client_id"""
)
_FINISH_ROTATION = Statement(
    """UPDATE oauth_clients SET second_sealed = NULL, second_expires = NULL WHERE client_id = :client_id
    RETURNING client_id"""
)
_COUNT_GRANTS = Statement("SELECT count(*) FROM (SELECT FROM oauth_grants WHERE client_id = :client_id LIMIT :limit) g")
_MARK_REGISTRATION_USED = Statement("UPDATE oauth_clients SET registration_used = now() WHERE client_id = :client_id")
_DELETE = Statement("DELETE FROM oauth_clients WHERE client_id = :client_id")
_LIST_ORIGINS = Statement(
    """SELECT redirect_hosts, redirect_uris, origins, first_party FROM oauth_clients
    WHERE profile <> 'strict' AND NOT disabled"""
)
_LIST_RESOURCE_SERVERS = Statement(
    "SELECT * FROM oauth_clients WHERE resource_server AND NOT disabled ORDER BY client_id"
)
MAX_CACHED_SECRETS = 1024
MAX_RECENT_CLIENTS = 4096


class RecentClient(NamedTuple):
    client: Client
    version: str
    epoch: int  # of the connections: after a failover, a transaction that was lost may have had the same id


class ClientStore:
    def __init__(self, database: Database, keyring: Keyring) -> None:
        self._database = database
        self._keyring = keyring
        # Decrypting the same text always gives the same secret, so the result can be cached.
        self._decrypt = lru_cache(MAX_CACHED_SECRETS)(keyring.decrypt)
        self._find = Batch(database, _FIND)
        self._recent: dict[str, RecentClient] = {}

    async def get(self, client_id: str) -> Client | None:
        """Returns None if the client does not exist."""
        epoch = self._database.epoch
        row = await self._find(client_id=client_id) if is_client_id(client_id) else None
        if row is None:
            self._recent.pop(client_id, None)
            return None
        client = Client.from_row(row)
        if len(self._recent) >= MAX_RECENT_CLIENTS:
            self._recent.clear()
        self._recent[client_id] = RecentClient(client, row["version"], epoch)
        return client

    def recent(self, client_id: str) -> RecentClient | None:
        """Returns the client as it was last read, or None. A statement must find out whether it has changed since."""
        recent = self._recent.get(client_id)
        return recent if recent and recent.epoch == self._database.epoch else None

    def secrets(self, client: Client) -> Sequence[tuple[str, str]]:
        """Returns the client's valid secrets, the newest first, each with its encrypted form in the database."""
        columns = (
            ("secret_sealed", client.secret_sealed, client.secret_expires),
            ("second_sealed", client.second_sealed, client.second_expires),
        )
        return [
            (self._decrypt(secret_purpose(client.client_id, column), sealed), sealed)
            for column, sealed, expires in columns
            if sealed is not None and (expires is None or expires > self._database.clock.utc())
        ]

    def authenticate(
        self,
        client: Client,
        credentials: ClientCredentials,
        redirect_uri: str,
        *,
        strict_methods: frozenset[str] = STRICT_METHODS,
    ) -> str | None:
        """Returns the encrypted secret that matched, or None if authentication fails (``authenticate_client``)."""
        secrets = self.secrets(client)
        matched = authenticate_client(client, secrets, credentials, redirect_uri, strict_methods=strict_methods)
        note_client(client.client_id if matched else "", "client")
        return matched


async def lock_client(tx: Transaction, client_id: str) -> Row | None:
    """Returns the client's row, which nothing else changes until the transaction ends; None if there is none."""
    return await tx.row(_LOCK, client_id=client_id) if is_client_id(client_id) else None


async def insert_client(tx: Transaction, client_id: str, values: dict[str, Any]) -> None:
    await tx.value(insert_statement("oauth_clients", ("client_id", *values)), client_id=client_id, **values)


async def update_client(tx: Transaction, client_id: str, values: dict[str, Any]) -> None:
    await tx.value(update_statement("oauth_clients", "client_id", values), client_id=client_id, **values)


async def list_client_rows(runner: Runner) -> list[Row]:
    return await runner.rows(_LIST)


async def find_client_page(runner: Runner, query: PageQuery, **filters: bool | None) -> Page[Row]:
    """Returns the clients whose id or name contains the search. ``filters``: disabled, approved and registered."""
    return await _PAGES.page(runner, query, **filters)


async def read_client_row(runner: Runner, client_id: str) -> Row | None:
    return await runner.row(_READ, client_id=client_id) if is_client_id(client_id) else None


async def count_grants(runner: Runner, client_id: str, limit: int) -> int:
    """Returns how many sign-ins of users the client has, counted up to ``limit``."""
    count: int = await runner.value(_COUNT_GRANTS, client_id=client_id, limit=limit)
    return count


async def list_origin_rows(runner: Runner) -> list[Row]:
    """Returns the redirect URIs, hosts and origins of all enabled clients of standard profiles."""
    return await runner.rows(_LIST_ORIGINS)


async def list_resource_servers(runner: Runner) -> list[Client]:
    """Returns the clients that are resource servers and enabled."""
    return [Client.from_row(row) for row in await runner.rows(_LIST_RESOURCE_SERVERS)]


async def add_secret(
    tx: Transaction, keyring: Keyring, client: Row, secret: str, overlap_s: float | None, lifetime_s: float | None
) -> None:
    """Adds a secret to a client that the caller has locked.

    The newest of the previous secrets stays valid for ``overlap_s``, by default until the rotation is finished; an
    older one is removed. An overlap of 0 means that the old secret may be known to others, so everything that was
    issued to the client ends. The new secret is valid for ``lifetime_s``, by default without an end.
    """
    client_id = client["client_id"]
    previous = None if overlap_s == 0 else client["secret_sealed"]
    if previous is not None:
        plain = keyring.decrypt(secret_purpose(client_id), previous)
        previous = keyring.encrypt(secret_purpose(client_id, "second_sealed"), plain)
    new = keyring.encrypt(secret_purpose(client_id), secret)
    await tx.value(
        _ADD_SECRET, client_id=client_id, new=new, previous=previous, overlap_s=overlap_s, lifetime_s=lifetime_s
    )
    if overlap_s == 0:
        await revoke_grants(tx, client_id)
    await record_changes(tx, [Change(ChangeType.CLIENT_SECRET_ROTATED, data={"client_id": client_id})])


async def finish_rotation(runner: Runner, client_id: str) -> bool:
    return await runner.value(_FINISH_ROTATION, client_id=client_id) is not None


async def mark_registration_used(tx: Runner, client_id: str) -> None:
    """The time after which an unused client that registered itself is deleted begins now."""
    await tx.value(_MARK_REGISTRATION_USED, client_id=client_id)


async def delete_client(tx: Transaction, client_id: str) -> None:
    """Deletes the client and everything that it was granted."""
    await revoke_grants(tx, client_id)
    await remember_application(tx, client_id)
    await tx.value(_DELETE, client_id=client_id)


def secret_purpose(client_id: str, column: str = "secret_sealed") -> str:
    return column_purpose(f"oauth_clients.{column}", client_id)
