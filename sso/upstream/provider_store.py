"""Providers in the database, and the list of them in the memory of each worker, for the sign-in forms."""

from typing import Any

import structlog
import trio

from sso.accounts.ports import SignInProvider
from sso.bus.bus import Bus
from sso.bus.reloading import keep_loaded
from sso.core.encryption import Keyring
from sso.db.database import Database
from sso.db.errors import DatabaseError
from sso.db.row_statements import insert_statement, update_statement
from sso.db.statement import Statement
from sso.db.transaction import Runner, Transaction
from sso.upstream.model import PROVIDER_ID, IdentityProvider, secret_purpose

TOPIC = "identity providers"

_GET = Statement("SELECT * FROM identity_providers WHERE provider_id = :provider_id")
_LOCK = Statement("SELECT * FROM identity_providers WHERE provider_id = :provider_id FOR UPDATE")
_LIST = Statement("SELECT * FROM identity_providers ORDER BY position, name, provider_id")
_DELETE = Statement("DELETE FROM identity_providers WHERE provider_id = :provider_id RETURNING provider_id")
# Users who sign in with this provider, as far as they are counted, and those among them who have no password, no
# passkey and no other enabled provider.
_COUNT_LINKS = Statement(
    """SELECT count(*) AS linked, count(*) FILTER (WHERE u.password_hash IS NULL AND NOT EXISTS (
        SELECT FROM linked_identities other JOIN identity_providers p USING (provider_id)
        WHERE other.user_id = l.user_id AND other.provider_id <> l.provider_id AND NOT p.disabled
    ) AND NOT EXISTS (SELECT FROM passkeys p WHERE p.user_id = l.user_id)) AS stranded
    FROM (SELECT user_id, provider_id FROM linked_identities WHERE provider_id = :provider_id LIMIT :limit) l
        JOIN users u USING (user_id)"""
)

MAX_COUNTED_LINKS = 1001

log = structlog.get_logger()


class ProviderStore:
    def __init__(self, database: Database, keyring: Keyring) -> None:
        self._database = database
        self._keyring = keyring

    async def get(self, provider_id: str) -> IdentityProvider | None:
        """Reads the database each time, so a removed provider cannot be used any more."""
        if not PROVIDER_ID.fullmatch(provider_id):
            return None
        row = await self._database.row(_GET, provider_id=provider_id)
        return IdentityProvider.from_row(row) if row else None

    async def list(self) -> list[IdentityProvider]:
        return await list_providers(self._database)

    def secret(self, provider: IdentityProvider) -> str | None:
        if provider.secret_sealed is None:
            return None
        return self._keyring.decrypt(secret_purpose(provider.provider_id), provider.secret_sealed)


async def list_providers(runner: Runner) -> list[IdentityProvider]:
    """Returns the providers in the order of their buttons."""
    return [IdentityProvider.from_row(row) for row in await runner.rows(_LIST)]


async def lock_provider(tx: Transaction, provider_id: str) -> IdentityProvider | None:
    """Returns a provider, which nothing else changes until the transaction ends; None if there is none."""
    row = await tx.row(_LOCK, provider_id=provider_id) if PROVIDER_ID.fullmatch(provider_id) else None
    return IdentityProvider.from_row(row) if row else None


async def insert_provider(tx: Transaction, provider_id: str, values: dict[str, Any]) -> None:
    statement = insert_statement("identity_providers", ("provider_id", *values))
    await tx.value(statement, provider_id=provider_id, **values)


async def update_provider(tx: Transaction, provider_id: str, values: dict[str, Any]) -> None:
    statement = update_statement("identity_providers", "provider_id", values)
    await tx.value(statement, provider_id=provider_id, **values)


async def delete_provider(runner: Runner, provider_id: str) -> bool:
    """Deletes a provider and its links to users. Returns False if it does not exist."""
    return await runner.value(_DELETE, provider_id=provider_id) is not None


async def count_links(runner: Runner, provider_id: str) -> tuple[int, int]:
    """Returns the number of linked users, and of those among them who could no longer sign in without the provider.

    At most MAX_COUNTED_LINKS are counted.
    """
    row = await runner.row(_COUNT_LINKS, provider_id=provider_id, limit=MAX_COUNTED_LINKS)
    assert row is not None
    return row["linked"], row["stranded"]


class ProviderList:
    """The providers for the sign-in forms. Reading them costs nothing; a change arrives by the bus."""

    def __init__(self, store: ProviderStore) -> None:
        self._store = store
        self.buttons: tuple[SignInProvider, ...] = ()

    async def load(self) -> None:
        self.buttons = tuple(
            SignInProvider(provider.provider_id, provider.name or provider.provider_id)
            for provider in await self._store.list()
            if not (provider.disabled or provider.is_for_tickets)
        )

    async def run(self, bus: Bus, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        await keep_loaded(bus, TOPIC, self.load, _log_failure, task_status=task_status)


def _log_failure(error: DatabaseError) -> None:
    log.warning("upstream.providers_read_failed", reason=str(error))
