"""Which version of the terms a user has accepted, and when."""

from sso.accounts.history.events import EventKind, record_event
from sso.db.database import Database
from sso.db.statement import Statement
from sso.db.transaction import Transaction

_ACCEPT = Statement(
    """UPDATE users SET terms_version = :version, terms_accepted = now()
    WHERE user_id = :user_id AND terms_version <> :version RETURNING user_id"""
)


class AcceptanceStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def accept(self, user_id: str, version: str) -> None:
        """Stores that the user accepts this version. The same call again changes nothing."""
        await self._database.transaction(_accept, user_id, version)


async def _accept(tx: Transaction, user_id: str, version: str) -> None:
    if await tx.value(_ACCEPT, user_id=user_id, version=version):
        await record_event(tx, user_id, EventKind.TERMS_ACCEPTED, name=version)
