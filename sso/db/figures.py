"""Figures for the admin console: small sums in the database, which all workers add to every few seconds.

They are the last hour by minute, and the funnel of logins by day.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import structlog
import trio
from msgspec import Struct

from sso.db.database import Database
from sso.db.errors import DatabaseError
from sso.db.statement import Statement
from sso.telemetry.counters import LOGINS
from sso.telemetry.login_funnel import LOGIN_FUNNEL, MAX_STORES, OTHER_STORES, STEPS, FunnelCounts
from sso.telemetry.request_figures import RequestFigures

INTERVAL_S = 5.0
MINUTES_KEPT_DAYS = 2
FUNNEL_KEPT_DAYS = 35
# A lost figure does no harm, so the commit does not wait for the disk. Rows are locked in key order.
_ADD = Statement(
    """INSERT INTO service_figures AS f (name, minute, value, expires)
    SELECT item.name, date_trunc('minute', now()), item.value, now() + make_interval(days => :days)
    FROM set_config('synchronous_commit', 'off', true),
        unnest(CAST(:names AS text[]), CAST(:values AS bigint[])) AS item (name, value) ORDER BY item.name
    ON CONFLICT (name, minute) DO UPDATE SET value = f.value + excluded.value"""
)
# Strangers choose applications and stores. An unknown application counts as none, and of the stores of an application
# a day has a limited number of rows; further ones share a row.
_ADD_FUNNEL = Statement(
    f"""WITH item AS (
        SELECT coalesce(a.application_id, 0) AS application_id, i.store, {", ".join(f"i.{step}" for step in STEPS)},
            CAST(now() AT TIME ZONE 'UTC' AS date) AS day
        FROM unnest(CAST(:application_id AS int[]), CAST(:store AS text[]),
            {", ".join(f"CAST(:{step} AS bigint[])" for step in STEPS)}
        ) AS i (application_id, store, {", ".join(STEPS)})
        LEFT JOIN applications a ON a.application_id = i.application_id
    ), numbered AS (
        SELECT item.*, known.store IS NOT NULL AS has_row,
            dense_rank() OVER (PARTITION BY item.application_id ORDER BY known.store IS NOT NULL, item.store) + (
                SELECT count(*) FROM login_funnel o WHERE o.day = item.day AND o.application_id = item.application_id
            ) AS number
        FROM item LEFT JOIN login_funnel known USING (day, application_id, store)
    ), kept AS (
        SELECT day, application_id, CASE WHEN has_row OR number <= :max_stores THEN store ELSE :other END AS store,
            {", ".join(f"CAST(sum({step}) AS bigint) AS {step}" for step in STEPS)}
        FROM numbered GROUP BY 1, 2, 3
    )
    INSERT INTO login_funnel AS f (day, application_id, store, {", ".join(STEPS)}, expires)
    SELECT day, application_id, store, {", ".join(STEPS)}, now() + make_interval(days => :days)
    FROM kept ORDER BY application_id, store
    ON CONFLICT (day, application_id, store) DO UPDATE SET
        {", ".join(f"{step} = f.{step} + excluded.{step}" for step in STEPS)}"""
)
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

log = structlog.get_logger()


class FigureWriter:
    """``gauges`` are numbers of this worker, such as its held polls; a minute has the sum over all workers."""

    def __init__(self, database: Database, requests: RequestFigures, gauges: Mapping[str, Callable[[], int]]) -> None:
        self._database = database
        self._requests = requests
        self._gauges = gauges
        self._counts: Counter[str] = Counter()  # that are not written yet
        self._funnel: FunnelCounts = {}
        self._logins_seen: dict[tuple[str, ...], int] = dict(LOGINS.counts)
        self._gauge_minute = -1

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        while True:
            await trio.sleep(INTERVAL_S)
            try:
                await self.write()
            except DatabaseError as error:  # the next write adds what this one could not
                log.warning("figures.write_failed", reason=str(error))

    async def write(self) -> None:
        self._collect()
        counts = {name: count for name, count in self._counts.items() if count}
        began = trio.current_time()
        await self._database.value(_ADD, names=list(counts), values=list(counts.values()), days=MINUTES_KEPT_DAYS)
        self._counts = Counter(database_us=int((trio.current_time() - began) * 1_000_000), database_calls=1)
        if self._funnel:
            keys, rows = zip(*self._funnel.items(), strict=True)
            steps = dict(zip(STEPS, map(list, zip(*rows, strict=True)), strict=True))
            application_ids, stores = [key[0] for key in keys], [key[1] for key in keys]
            await self._database.value(
                _ADD_FUNNEL,
                application_id=application_ids,
                store=stores,
                max_stores=MAX_STORES,
                other=OTHER_STORES,
                days=FUNNEL_KEPT_DAYS,
                **steps,
            )
            self._funnel = {}

    def _collect(self) -> None:
        self._counts += self._requests.take()
        for (method, result), count in LOGINS.counts.items():
            added = count - self._logins_seen.get((method, result), 0)
            self._logins_seen[method, result] = count
            if result == "success":
                self._counts["sign_ins"] += added
            elif result != "code_required":
                self._counts["failures"] += added
        for key, steps in LOGIN_FUNNEL.take().items():
            sums = self._funnel.setdefault(key, [0] * len(STEPS))
            self._funnel[key] = [one + other for one, other in zip(sums, steps, strict=True)]
        minute = int(self._database.clock.now()) // 60
        if minute != self._gauge_minute:  # once in each minute
            self._gauge_minute = minute
            self._counts.update({name: read() for name, read in self._gauges.items()})


class FunnelRow(Struct, frozen=True):
    application_id: int  # 0: the game has named none that exists
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
