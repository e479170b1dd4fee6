"""Measures the stream of changes: the time from the commit of a change to its event, at a given number a second.

The server has two workers. Clients read the stream as server-sent events, and one by long polls.

"recorded": another process records changes of permissions in transactions of its own, as a command does, so both
workers compete to number them. The time begins when the commit is done. "saved": requests give and take a permission of
a user (meta/data save). The time begins with the answer, which follows the commit; it is 0 if the event arrives first.
Changes are made at their times, whether or not earlier ones are done.
"""

import itertools
import tempfile
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import orjson
import trio

from scripts.benchmarks.report import Steps, arguments, cpu_seconds, show
from sso.bus.wiring import build_bus
from sso.change_stream.events import Change, ChangeType, record_changes
from sso.db.database import Database
from tests.kit import postgres
from tests.kit.server import QUICK, Server, running
from tests.perm.endpoints.conftest import FACTOR, Studio

STREAMS = 2
USERS = 100
CONNECTIONS = 32
LATEST_S = 30.0  # how long events are waited for after the last change
CHANGES = "/api/admin/changes"
SAVED_PER_SECOND = 50.0  # each takes some milliseconds of a core

MakeChange = Callable[[str, bool], Awaitable[None]]


@dataclass
class Measurement:
    """The times of each change, by user and the number of the change of that user, and of the events of each reader."""

    done: dict[tuple[str, int], float] = field(default_factory=dict)
    received: dict[str, dict[tuple[str, int], float]] = field(default_factory=lambda: defaultdict(dict))

    def is_complete(self) -> bool:
        return len(self.received) == STREAMS + 1 and all(
            len(times) >= len(self.done) for times in self.received.values()
        )


@dataclass(frozen=True)
class Bench:
    server: Server
    headers: dict[str, str]
    application_id: int
    users: list[str]
    rate: float
    seconds: float
    steps: Steps
    measured: Measurement = field(default_factory=Measurement)

    async def change_all(self, make_change: MakeChange) -> None:
        """Makes changes at the rate. The changes of one user follow each other."""
        counts: dict[str, int] = defaultdict(int)
        locks = {user_id: trio.Lock() for user_id in self.users}

        async def change(user_id: str) -> None:
            async with locks[user_id]:
                number = counts[user_id]
                counts[user_id] += 1
                await make_change(user_id, number % 2 == 0)
                self.measured.done[(user_id, number)] = trio.current_time()

        async with trio.open_nursery() as nursery:
            began = trio.current_time()
            total = int(self.rate * self.seconds)
            for number, user_id in zip(range(total), itertools.cycle(self.users), strict=False):
                await trio.sleep_until(began + number / self.rate)
                nursery.start_soon(change, user_id)
                if number % 50 == 0:
                    self.steps.detail(f"{number} of {total}")

    async def follow_stream(self, name: str, after: str, *, task_status: trio.TaskStatus[None]) -> None:
        counts: dict[str, int] = defaultdict(int)
        headers = self.headers | {"Accept": "text/event-stream"}
        async with (
            httpx.AsyncClient(base_url=self.server.base_url, timeout=60) as client,
            client.stream("GET", CHANGES, params={"after": after}, headers=headers) as response,
        ):
            assert response.status_code == 200
            task_status.started()
            async for line in response.aiter_lines():
                if line.startswith("data:"):
                    self._record(name, orjson.loads(line[5:]), counts)

    async def follow_polls(self, name: str, after: str, *, task_status: trio.TaskStatus[None]) -> None:
        counts: dict[str, int] = defaultdict(int)
        async with httpx.AsyncClient(base_url=self.server.base_url, timeout=90) as client:
            task_status.started()
            while True:
                query = {"after": after, "wait": "30", "limit": "200"}
                body = (await client.get(CHANGES, params=query, headers=self.headers)).json()
                after = body["next"]
                for event in body["data"]:
                    self._record(name, event, counts)

    def _record(self, name: str, event: dict[str, Any], counts: dict[str, int]) -> None:
        if event.get("application_id") == self.application_id:
            user_id = event["user_id"]
            self.measured.received[name][(user_id, counts[user_id])] = trio.current_time()
            counts[user_id] += 1

    async def newest_cursor(self) -> str:
        async with httpx.AsyncClient(base_url=self.server.base_url, timeout=30) as client:
            page: dict[str, Any] = {"data": [None], "next": ""}
            while page["data"]:
                query = {"after": page["next"], "limit": "200"}
                page = (await client.get(CHANGES, params=query, headers=self.headers)).json()
            return str(page["next"])

    async def run(self, what: str, make_change: MakeChange) -> list[dict[str, Any]]:
        workers, after = self.server.workers(), await self.newest_cursor()
        async with trio.open_nursery() as readers:
            for number in range(STREAMS):
                await readers.start(self.follow_stream, f"stream {number + 1}", after)
            await readers.start(self.follow_polls, "long poll", after)
            before, began = cpu_seconds(workers), trio.current_time()
            await self.change_all(make_change)
            took = trio.current_time() - began
            with trio.move_on_after(LATEST_S):
                while not self.measured.is_complete():  # noqa: ASYNC110 - checked rarely, to disturb little
                    await trio.sleep(0.1)
            used = cpu_seconds(workers) - before
            readers.cancel_scope.cancel()
        return [self._row(what, name, took, used) for name in sorted(self.measured.received)]

    def _row(self, what: str, name: str, took: float, used: float) -> dict[str, Any]:
        done, times = self.measured.done, self.measured.received[name]
        delays = sorted(max(0.0, at - done[key]) for key, at in times.items())
        percentiles = {f"p{percent} ms": delays[len(delays) * percent // 100] * 1e3 for percent in (50, 90, 99)}
        row = {"changes": what, "reader": name, "per second": len(done) / took, "missing": len(done) - len(times)}
        return row | percentiles | {"CPU ms each": used / len(done) * 1e3}


async def measure_recorded(bench: Bench) -> list[dict[str, Any]]:
    async with Database.open(bench.server.settings["SSO_DATABASE_URL"], 16) as database, trio.open_nursery() as nursery:
        bus = build_bus(database)
        database.publish_topic = bus.publish
        await nursery.start(bus.run)
        await bus.connected.wait()

        async def record(user_id: str, is_gained: bool) -> None:
            data = {
                "gained": ["private_data.chat.kick"] * is_gained,
                "lost": ["private_data.chat.kick"] * (not is_gained),
            }
            change = Change(ChangeType.PERMISSIONS_CHANGED, user_id, bench.application_id, data)
            await database.transaction(record_changes, [change])

        rows = await bench.run("recorded", record)
        nursery.cancel_scope.cancel()
        return rows


async def measure_saved(bench: Bench) -> list[dict[str, Any]]:
    limits = httpx.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS)
    async with httpx.AsyncClient(base_url=bench.server.base_url, timeout=60, limits=limits) as client:

        async def save(user_id: str, is_gained: bool) -> None:
            data = {"user_id": user_id, "private_data": {"chat": {"kick": {"value": is_gained}}}}
            body = {"action": "save", "application_id": bench.application_id, "data": data}
            answer = await client.post("/api/permissions/meta/data", json=body, headers=bench.headers)
            assert answer.status_code == 200, answer.text

        return await bench.run("saved", save)


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--rate", type=float, default=200.0, help="recorded changes a second (default: 200)")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    steps = Steps(3)
    with postgres.running() as database, tempfile.TemporaryDirectory() as folder:
        settings = QUICK | {"SSO_DATABASE_URL": database.fresh(), "SSO_WORKERS": "2", "SSO_LOG_LEVEL": "warning"}
        settings |= {"SSO_RATE_LOGIN": "0", "SSO_RATE_ADMIN": "0"}
        with running(Path(folder), **settings) as server, server.client() as client:
            steps.next("starting a server with two workers")
            studio = Studio(server, client)
            headers = {"Authorization": f"Bearer {studio.root.jwt}", "Factor": FACTOR}
            logins = [
                {"user_id": str(5_000_000 + number), "login": f"c{number}@example.com"} for number in range(USERS)
            ]
            server.apply({"users": logins})
            users = [login["user_id"] for login in logins]
            for measure, rate in (
                (measure_recorded, options.rate),
                (measure_saved, min(options.rate, SAVED_PER_SECOND)),
            ):
                steps.next(f"{rate:g} changes a second")
                bench = Bench(server, headers, studio.application(), users, rate, options.seconds, steps)
                rows += trio.run(measure, bench)
    show(rows, options.out)


if __name__ == "__main__":
    main()
