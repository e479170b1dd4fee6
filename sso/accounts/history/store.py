"""Reads the security history of a user."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sso.accounts.model import application_ids
from sso.accounts.ports import ApplicationDirectory
from sso.db.database import Database
from sso.db.statement import Statement
from sso.db.transaction import Row

PAGE = 50

_LIST = Statement(
    """SELECT id, at, kind, address, device, detail, times, last_at FROM account_events
    WHERE user_id = :user_id AND id < :before AND at > now() - make_interval(days => :days)
    ORDER BY id DESC LIMIT :limit"""
)
MAX_ID = 2**63 - 1


@dataclass(frozen=True)
class AccountEvent:
    id: int
    at: datetime
    kind: str
    address: str
    device: str
    detail: dict[str, Any]
    times: int  # attempts that share the entry
    last_at: datetime | None  # the last of them
    game: str = ""  # the name of the game or program that the event is about


class AccountHistory:
    def __init__(self, database: Database, applications: ApplicationDirectory, days: int) -> None:
        self._database = database
        self._applications = applications
        self.days = days

    async def list(self, user_id: str, limit: int = PAGE, before: int = MAX_ID) -> list[AccountEvent]:
        """Returns the newest events with an id below ``before``, the newest first."""
        rows = await self._database.rows(_LIST, user_id=user_id, before=before, days=self.days, limit=limit)
        titles = {pair: await self._applications.title(application_ids(*pair)) for pair in set(map(_game_ids, rows))}
        return [AccountEvent(**dict(row), game=titles[_game_ids(row)]) for row in rows]


def _game_ids(row: Row) -> tuple[int, int]:
    return row["detail"].get("app_id", 0), row["detail"].get("gapp_id", 0)
