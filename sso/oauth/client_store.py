"""Clients in the database, and their secrets. One method, one promise."""

from collections.abc import Sequence
from functools import lru_cache

from sqlalchemy import select

from sso.core.encryption import Keyring, place
from sso.core.ids import secret_token
from sso.db.batch.statement_batch import Batch
from sso.db.database import Database
from sso.db.statement import Statement
from sso.db.tables import oauth_clients
from sso.db.transaction import Runner, Transaction
from sso.oauth.model import CLIENT_ID, Client
from sso.oauth.redirect_uris import redirect_of

_BY_IDS = Statement(
    """SELECT item.n, c.* FROM unnest(CAST(:ids AS text[])) WITH ORDINALITY AS item (id, n)
    JOIN oauth_clients c ON c.client_id = item.id"""
)
_ALL = Statement(select(oauth_clients).order_by(oauth_clients.c.client_id))
_LOCK = Statement("SELECT * FROM oauth_clients WHERE client_id = :client_id FOR UPDATE")
_SET_SECRETS = Statement(
    "UPDATE oauth_clients SET secret_sealed = :first, second_sealed = :second WHERE client_id = :client_id"
)
_SET_DISABLED = Statement(
    "UPDATE oauth_clients SET disabled = :disabled WHERE client_id = :client_id RETURNING client_id"
)
_OUTSTANDING = ("oauth_requests", "oauth_codes", "oauth_grants")
_END = tuple(
    Statement(f"DELETE FROM {table} WHERE client_id = :client_id")  # noqa: S608 - the names are ours
    for table in _OUTSTANDING
)
_ADDRESSES = Statement(
    " UNION ".join(
        f"SELECT redirect_uri FROM {table} WHERE client_id = :client_id"  # noqa: S608 - the names are ours
        for table in _OUTSTANDING
    )
)
_END_AT = tuple(
    Statement(
        f"DELETE FROM {table} WHERE client_id = :client_id AND redirect_uri = ANY(CAST(:uris AS text[]))"  # noqa: S608 - the names are ours
    )
    for table in _OUTSTANDING
)
MAX_SECRETS = 1024


class ClientStore:
    def __init__(self, database: Database, keyring: Keyring) -> None:
        self._database = database
        self._keyring = keyring
        # A sealed text is always the same secret, so what was opened once need not be opened again.
        self._open = lru_cache(MAX_SECRETS)(keyring.open)
        self._by_id = Batch(database, _BY_IDS)

    async def get(self, client_id: str) -> Client | None:
        row = await self._by_id(client_id) if CLIENT_ID.fullmatch(client_id) else None
        return Client.from_row(row) if row else None

    async def list(self) -> list[Client]:
        return [Client.from_row(row) for row in await self._database.rows(_ALL)]

    def secrets(self, client: Client) -> Sequence[tuple[str, str]]:
        """The secrets that are valid now, each with the sealed form it is known by in the database."""
        columns = (("secret_sealed", client.secret_sealed), ("second_sealed", client.second_sealed))
        return [
            (self._open(secret_purpose(client.client_id, column), sealed), sealed)
            for column, sealed in columns
            if sealed is not None
        ]

    async def rotate_secret(self, client_id: str) -> str | None:
        """A new secret beside the present one, which stays valid; the one before that ends. None: no such client."""

        async def work(tx: Transaction) -> str | None:
            row = await tx.row(_LOCK, client_id=client_id)
            if row is None:
                return None
            present = [secret for secret, _ in self.secrets(Client.from_row(row))][:1]
            await self._set(tx, client_id, [new, *present])
            return new

        new = secret_token()
        return await self._database.transaction(work)

    async def finish_rotation(self, client_id: str) -> bool:
        """Only the newest secret is valid from now on. False: no such client."""

        async def work(tx: Transaction) -> bool:
            row = await tx.row(_LOCK, client_id=client_id)
            if row is None:
                return False
            await self._set(tx, client_id, [secret for secret, _ in self.secrets(Client.from_row(row))][:1])
            return True

        return await self._database.transaction(work)

    async def set_disabled(self, client_id: str, disabled: bool) -> bool:
        """A disabled client can do nothing, and all it was granted has ended, also after it is enabled again."""

        async def work(tx: Transaction) -> bool:
            found = await tx.value(_SET_DISABLED, client_id=client_id, disabled=disabled)
            if disabled:
                await end_grants(tx, client_id)
            return found is not None

        return await self._database.transaction(work)

    async def _set(self, tx: Runner, client_id: str, secrets: Sequence[str]) -> None:
        sealed = [
            self._keyring.seal(secret_purpose(client_id, column), secret)
            for column, secret in zip(("secret_sealed", "second_sealed"), secrets, strict=False)
        ]
        first, second = (*sealed, None, None)[:2]
        await tx.value(_SET_SECRETS, client_id=client_id, first=first, second=second)


async def end_grants(tx: Runner, client_id: str) -> None:
    """Whatever the client was granted, or is being granted, has ended."""
    for statement in _END:
        await tx.value(statement, client_id=client_id)


async def end_grants_elsewhere(tx: Runner, old: Client, new: Client) -> None:
    """What was granted, or is being granted, at addresses that are the client's no more has ended.

    The caller holds the client's row ``FOR UPDATE``: whoever is granting something waits, or is waited for.
    """
    rows = await tx.rows(_ADDRESSES, client_id=new.client_id)
    gone = [row["redirect_uri"] for row in rows if not _is_still_theirs(row["redirect_uri"], old, new)]
    if gone:
        for statement in _END_AT:
            await tx.value(statement, client_id=new.client_id, uris=gone)


def _is_still_theirs(uri: str, old: Client, new: Client) -> bool:
    if redirect_of(uri, new.redirect_hosts, new.redirect_uris):
        return True
    # Then it was, and is, only because the service itself has no TLS.
    never = redirect_of(uri, old.redirect_hosts, old.redirect_uris) is None
    return never and redirect_of(uri, new.redirect_hosts, new.redirect_uris, any_http=True) is not None


def secret_purpose(client_id: str, column: str = "secret_sealed") -> str:
    return place(f"oauth_clients.{column}", client_id)
