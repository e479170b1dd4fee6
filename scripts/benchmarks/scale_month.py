"""A month in minutes: how tables and indexes grow while rows are written, expire, are deleted and vacuumed.

A simulated day lasts some seconds, and lifetimes are as many days as usual. After each day, expired rows are deleted as
the service does it. Autovacuum looks at the tables every second, which is rarer in relation to a day than usual.
"""

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

from scripts.benchmarks.console import own_database
from scripts.benchmarks.game_sessions import new_gsids, register
from scripts.benchmarks.latency_kinds import POLL, GameKinds
from scripts.benchmarks.oauth_login import login
from scripts.benchmarks.oauth_service import running_service
from scripts.benchmarks.oauth_target import Target, address_of
from scripts.benchmarks.open_loop.generator import Generator, Planned
from scripts.benchmarks.report import Steps
from sso.db.cleanup import delete_expired
from tests.kit import postgres
from tests.kit.server import Server

LOGIN = "whole login"
HELD_S = 0.5
ANSWER_S = 10.0
CONNECTIONS = 1000
SHOWN = 12  # tables, the largest ones
# Lifetimes in days that settings have by default. Shorter ones are a day.
LIFETIMES = {"SSO_BROWSER_TTL_S": 14, "SSO_REFRESH_TTL_S": 30, "SSO_TOKEN_TTL_S": 30}
SHORT = ("SSO_ACCESS_TTL_S", "SSO_STOKEN_TTL_S", "SSO_JWT_TTL_S")
_SIZES = """
    SELECT json_agg(json_build_object('name', relname, 'table', pg_table_size(relid), 'indexes', pg_indexes_size(relid),
        'rows', n_live_tup, 'dead', n_dead_tup, 'vacuums', autovacuum_count))
    FROM pg_stat_user_tables
"""


@dataclass(frozen=True)
class TableSize:
    name: str
    table: int
    indexes: int
    rows: int
    dead: int
    vacuums: int

    @property
    def whole(self) -> int:
        return self.table + self.indexes


Day = Mapping[str, TableSize]


def rows(days: int, day_s: int, per_second: float) -> list[dict[str, Any]]:
    steps = Steps(days)
    lifetimes = {name: str(count * day_s) for name, count in LIFETIMES.items()} | dict.fromkeys(SHORT, str(day_s))
    with (
        own_database(None) as (dsn, _, _),
        running_service(dsn, SSO_WORKERS="2", **lifetimes) as (server, target),
    ):
        postgres.execute(dsn, "ALTER SYSTEM SET autovacuum_naptime = '1s'")
        postgres.execute(dsn, "SELECT pg_reload_conf()")
        month = Month(server, target, dsn)
        try:
            found = [month.day(day_s, per_second, steps) for _ in range(days)]
        finally:
            month.generator.close()
    return table_rows(found, month.generator_failures)


class Month:
    def __init__(self, server: Server, target: Target, dsn: str) -> None:
        self._server, self._dsn = server, dsn
        self._games = GameKinds(b"", HELD_S)
        users = cycle(target.users)
        workload = {
            LOGIN: lambda: [Planned(LOGIN, login(target, next(users), lambda _: None))],
            POLL: self._games.workload()[POLL],
        }
        self.generator = Generator(address_of(target), workload, answer_s=ANSWER_S, connections=CONNECTIONS)
        self.generator_failures = 0

    def day(self, day_s: int, per_second: float, steps: Steps) -> Day:
        """Returns the sizes of all tables after a day."""
        steps.next("a day")
        gsids = new_gsids(round(per_second * day_s) + 1)
        register(self._dsn, gsids, 2 * day_s)
        self._games.add_sessions(gsids)
        figures = self.generator.run_open(2 * per_second, {LOGIN: 1, POLL: 1}, day_s)
        self.generator_failures += figures.failures.total()
        self._server.run_with_services(lambda services: delete_expired(services.database, 30, 30, 30, 30))
        return {size["name"]: TableSize(**size) for size in json.loads(postgres.fetch(self._dsn, _SIZES))}


def table_rows(days: Sequence[Day], failures: int) -> list[dict[str, Any]]:
    """Returns a row for each of the largest tables, with its growth per day over the second half."""
    last = days[-1]
    largest = sorted(last.values(), key=lambda size: size.whole, reverse=True)[:SHOWN]
    return [
        {
            "table": size.name,
            "rows": size.rows,
            "dead rows": size.dead,
            "autovacuum runs": size.vacuums,
            "MiB at half time": days[len(days) // 2][size.name].whole / 2**20,
            "MiB of the table": size.table / 2**20,
            "MiB of its indexes": size.indexes / 2**20,
            "KiB more per day": growth([day[size.name].whole for day in days]) / 1024,
            "rows more per day": growth([day[size.name].rows for day in days]),
            "note": f"{failures} requests failed" if failures else "",
        }
        for size in largest
    ]


def growth(values: Sequence[int]) -> float:
    """Returns the slope over the second half. A table that does not grow with its rows has found its size."""
    half = values[len(values) // 2 :]
    return statistics.linear_regression(range(len(half)), half).slope if len(half) > 1 else 0.0
