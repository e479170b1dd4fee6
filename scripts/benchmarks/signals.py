"""Measures signals about users: the time from the commit of a change to the answer of a held poll.

The server has two workers. Another process records changes in transactions of its own, as a command does, at a given
number a second, whether or not earlier ones are done. A receiver polls its stream, and acknowledges what it has got
with the next poll. The time begins when the commit is done, and ends when the answer has been read.
"""

import base64
import itertools
import os
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import orjson
import trio

from scripts.benchmarks.report import Steps, arguments, cpu_seconds, show
from sso.bus.wiring import build_bus
from sso.db.database import Database
from sso.db.statement import Statement
from sso.db.transaction import Transaction
from sso.signals.recording import record_history_signal
from tests.kit import postgres
from tests.kit.server import QUICK, Server, running
from tests.kit.signals import SignalClient, signal_client

USERS = 100
LATEST_S = 30.0  # how long events are waited for after the last change
_CONNECT = Statement(
    """INSERT INTO oauth_consents (user_id, client_id, scopes)
    SELECT user_id, :client_id, '{openid}' FROM unnest(CAST(:user_ids AS text[])) AS u (user_id)"""
)


class SignalTimes:
    """When each change was committed and received, by user and the number of the change of that user."""

    def __init__(self) -> None:
        self.committed: dict[tuple[str, int], float] = {}
        self.received: dict[tuple[str, int], float] = {}

    def row(self, took: float, used: float) -> dict[str, Any]:
        delays = sorted(max(0.0, at - self.committed[key]) for key, at in self.received.items())
        percentiles = {f"p{percent} ms": delays[len(delays) * percent // 100] * 1e3 for percent in (50, 90, 99)}
        count = len(self.committed)
        row = {"signals per second": count / took, "missing": count - len(self.received)}
        return row | percentiles | {"CPU ms each": used / count * 1e3, "load average": os.getloadavg()[0]}


async def change_all(database: Database, users: list[str], rate: float, seconds: float, times: SignalTimes) -> None:
    counts: dict[str, int] = defaultdict(int)
    locks = {user_id: trio.Lock() for user_id in users}

    async def record(tx: Transaction, user_id: str) -> None:
        await record_history_signal(tx, user_id, "password_changed")

    async def change(user_id: str) -> None:
        async with locks[user_id]:
            number = counts[user_id]
            counts[user_id] += 1
            await database.transaction(record, user_id)
            times.committed[(user_id, number)] = trio.current_time()

    async with trio.open_nursery() as nursery:
        began = trio.current_time()
        for number, user_id in zip(range(int(rate * seconds)), itertools.cycle(users), strict=False):
            await trio.sleep_until(began + number / rate)
            nursery.start_soon(change, user_id)


async def follow(client: SignalClient, stream: str, headers: dict[str, str], times: SignalTimes) -> None:
    counts: dict[str, int] = defaultdict(int)
    acknowledged: list[str] = []
    async with httpx.AsyncClient(base_url=client.site.server.base_url, timeout=90, headers=headers) as http:
        while True:
            answer = await http.post(f"/ssf/poll?stream_id={stream}", json={"ack": acknowledged})
            now, sets = trio.current_time(), answer.json()["sets"]
            acknowledged = list(sets)
            for token in sets.values():
                user_id = _claims(token)["sub_id"]["sub"]
                times.received[(user_id, counts[user_id])] = now
                counts[user_id] += 1


def _claims(token: str) -> dict[str, Any]:
    payload = token.split(".")[1]
    claims: dict[str, Any] = orjson.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return claims


async def measure(server: Server, client: SignalClient, users: list[str], rate: float, seconds: float) -> Any:
    stream, headers, times = client.add_stream(), client.headers("ssf.read"), SignalTimes()
    async with Database.open(server.settings["SSO_DATABASE_URL"], 16) as database, trio.open_nursery() as nursery:
        await database.value(_CONNECT, client_id=client.site.client_id, user_ids=users)
        bus = build_bus(database)
        database.publish_topic = bus.publish
        await nursery.start(bus.run)
        await bus.connected.wait()
        nursery.start_soon(follow, client, stream, headers, times)
        before, began = cpu_seconds(server.workers()), trio.current_time()
        await change_all(database, users, rate, seconds, times)
        took = trio.current_time() - began
        with trio.move_on_after(LATEST_S):
            while len(times.received) < len(times.committed):  # noqa: ASYNC110 - checked rarely, to disturb little
                await trio.sleep(0.1)
        used = cpu_seconds(server.workers()) - before
        nursery.cancel_scope.cancel()
    return times.row(took, used)


@contextmanager
def prepared(folder: Path) -> Iterator[tuple[Server, SignalClient, list[str]]]:
    with postgres.running() as database:
        settings = QUICK | {"SSO_DATABASE_URL": database.fresh(), "SSO_WORKERS": "2", "SSO_LOG_LEVEL": "warning"}
        with running(folder, **settings) as server:
            logins = [{"user_id": str(5_000_000 + n), "login": f"s{n}@example.com"} for n in range(USERS)]
            server.apply({"users": logins})
            yield server, signal_client(server), [login["user_id"] for login in logins]


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--rate", type=float, default=200.0, help="changes a second (default: 200)")
    options = parser.parse_args()
    steps = Steps(2)
    with tempfile.TemporaryDirectory() as folder:
        steps.next("starting a server with two workers")
        with prepared(Path(folder)) as (server, client, users):
            steps.next(f"{options.rate:g} changes a second")
            row = trio.run(measure, server, client, users, options.rate, options.seconds)
    show([row], options.out)


if __name__ == "__main__":
    main()
