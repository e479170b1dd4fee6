"""The security history of users in the database."""

from datetime import datetime
from typing import Any

from msgspec import Struct

from sso.accounts.model import application_ids
from sso.accounts.ports import ApplicationDirectory
from sso.db.database import Database
from sso.db.statement import Statement
from sso.db.transaction import Row, Runner

PAGE = 50

_LIST = Statement(
    """SELECT id, at, kind, address, device, detail, times, last_at FROM account_events
    WHERE user_id = :user_id AND id < :before AND at > now() - make_interval(days => :days)
    ORDER BY id DESC LIMIT :limit"""
)
MAX_ID = 2**63 - 1
MAX_DAILY_FAILURES = 20  # rows of failed attempts that one account gets a day; further ones are added to the newest
_RECORD = Statement(
    """INSERT INTO account_events (user_id, kind, address, device, detail)
    VALUES (:user_id, :kind, :address, :device, :detail)"""
)
# Attempts from one address within an hour share a row, and a day has at most MAX_DAILY_FAILURES rows: a stranger cannot
# flood the history. A row of attempts from several addresses has none. Only the newest events are read, so the cost is
# bounded.
_RECORD_FAILURE = Statement(
    f"""WITH newest_events AS MATERIALIZED (
        SELECT id, kind, address, at FROM account_events WHERE user_id = :user_id ORDER BY id DESC LIMIT 100
    ), failures AS (
        SELECT id, address, at FROM newest_events WHERE kind = :kind AND at > now() - interval '1 day'
    ), joined_failure AS (
        SELECT id FROM failures WHERE (address = :address AND at > now() - interval '1 hour')
            OR (SELECT count(*) FROM failures) >= {MAX_DAILY_FAILURES}
        ORDER BY address = :address DESC, id DESC LIMIT 1
    ), repeated_failure AS (
        UPDATE account_events e SET times = times + :attempts, last_at = now(),
            address = CASE e.address WHEN :address THEN e.address ELSE '' END
        WHERE e.id = (SELECT id FROM joined_failure)
    )
    INSERT INTO account_events (user_id, kind, address, times, last_at)
    SELECT user_id, :kind, :address, :attempts, CASE WHEN :attempts > 1 THEN now() END
    FROM users WHERE user_id = :user_id AND NOT EXISTS (SELECT FROM joined_failure)"""
)


class AccountEvent(Struct, frozen=True):
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


async def insert_event(tx: Runner, user_id: str, kind: str, address: str, device: str, detail: dict[str, Any]) -> None:
    await tx.value(_RECORD, user_id=user_id, kind=kind, address=address, device=device, detail=detail)


async def insert_failure(tx: Runner, user_id: str, kind: str, address: str, attempts: int) -> None:
    """Adds failed attempts, or counts them in the row of similar ones."""
    await tx.value(_RECORD_FAILURE, user_id=user_id, kind=kind, address=address, attempts=attempts)
