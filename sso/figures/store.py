"""Reads the figures: the last hour by minute, and the funnel of logins by day."""

from dataclasses import dataclass
from typing import Any

from sso.core.login_funnel import STEPS
from sso.db.database import Database
from sso.db.statement import Statement

MINUTES = 60
NAMES = ("sign_ins", "failures", "requests", "errors", "held_polls", "sockets", "database_us", "database_calls")

_MINUTES = Statement(
    """SELECT name, CAST(extract(epoch FROM date_trunc('minute', now()) - minute) / 60 AS int) AS age, value
    FROM service_figures
    WHERE name = ANY (CAST(:names AS text[]))
        AND minute > date_trunc('minute', now()) - make_interval(mins => :minutes)"""
)
# The names are joined after the limit: a week may have tens of thousands of rows.
_FUNNEL = Statement(
    f"""SELECT f.*, a.name FROM (
        SELECT application_id, store, {", ".join(f"CAST(sum({step}) AS bigint) AS {step}" for step in STEPS)}
        FROM login_funnel WHERE day > CAST(now() AT TIME ZONE 'UTC' AS date) - CAST(:days AS int)
        GROUP BY application_id, store ORDER BY registered DESC, application_id, store LIMIT :limit
    ) f LEFT JOIN applications a ON a.application_id = f.application_id
    ORDER BY f.registered DESC, f.application_id, f.store"""
)


@dataclass(frozen=True)
class FunnelRow:
    application_id: int  # 0: the game has named none
    name: str
    store: str
    steps: dict[str, int]


class FigureStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def last_hour(self, names: tuple[str, ...]) -> dict[str, list[int]]:
        """Returns the values of the last 60 minutes by name, the oldest first; the last minute is not over yet."""
        series = {name: [0] * MINUTES for name in names}
        for row in await self._database.rows(_MINUTES, names=list(names), minutes=MINUTES):
            if 0 <= row["age"] < MINUTES:
                series[row["name"]][MINUTES - 1 - row["age"]] = row["value"]
        return series

    async def funnel(self, days: int, limit: int) -> list[FunnelRow]:
        """Returns the applications and stores with the most logins, those with the most first."""
        rows: list[Any] = await self._database.rows(_FUNNEL, days=days, limit=limit)
        return [
            FunnelRow(row["application_id"], row["name"] or "", row["store"], {step: row[step] for step in STEPS})
            for row in rows
        ]
