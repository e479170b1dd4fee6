"""Measures the bus: confirmations per second with 1, 50 and 100 listening workers, and the time of a wake-up across two
nodes, over PostgreSQL and over NATS.

Each confirmation is for a poll that one of the workers holds. "in the transaction" is how it was done before: the
statement that confirms also notifies all workers. The workers are connections of one other process.

A wake-up is the time from a request that closes a session at one node to the answer of the poll that another node, or
the same one, holds.
"""

import argparse
import http.client
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import orjson
import trio

from scripts.benchmarks.oauth_service import SETTINGS
from scripts.benchmarks.report import arguments, progress, show
from sso.accounts.model import User
from sso.bus.wiring import build_bus
from sso.config import load
from sso.core.encryption import MasterKey
from sso.db.database import Database
from sso.db.embedded import start
from sso.db.statement import Statement
from sso.gsid.session_store import GameSessionStore
from sso.log import configure_logging
from tests.kit import postgres
from tests.kit.nats import PROGRAM, nats_server
from tests.kit.server import Server, running

LISTENERS = (1, 50, 100)
CLIENTS = 16  # confirmations at a time
SESSIONS = 20_000
CONNECT_S = 20
PATH = "/proxy/api/gameSession"
_USER = Statement("INSERT INTO users (user_id, login, login_key) VALUES ('1', 'ann', 'ann') RETURNING *")
_REGISTER = Statement(
    """INSERT INTO game_sessions (gsid, location, address, ends, expires, poll, poll_holder, held_until)
    SELECT gsid, '', '127.0.0.1', now() + interval '20 minutes', now() + interval '30 minutes', 1, '1@' || worker,
        now() + interval '20 minutes'
    FROM unnest(CAST(:gsids AS text[]), CAST(:workers AS text[])) AS item (gsid, worker)"""
)
_CONFIRM_AND_NOTIFY = Statement(
    """WITH confirmed AS (
        UPDATE game_sessions s SET status = 'confirmed', stage = 'confirmed', user_id = u.user_id,
            valid_from = u.valid_from
        FROM users u WHERE s.gsid = :gsid AND s.status = 'pending' AND s.ends > now() AND u.user_id = '1'
        RETURNING s.gsid
    ) SELECT gsid, pg_notify('sso', 'poll:' || gsid || E'\\nsocket:' || gsid) FROM confirmed"""
)
_POLLED = Statement("SELECT poll FROM game_sessions WHERE gsid = :gsid")


@contextmanager
def listeners(dsn: str, count: int, url: str | None) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    command = [sys.executable, "-m", "scripts.benchmarks.bus_listeners", dsn, str(count), *([url] if url else [])]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=2, text=True) as process:
        assert process.stdout is not None
        yield process, process.stdout.readline().split()


async def confirm_all(dsn: str, url: str | None, workers: Sequence[str], seconds: float, how: str) -> dict[str, Any]:
    async with Database.open(dsn, 8) as database, trio.open_nursery() as nursery:
        bus = build_bus(database, load(None, {"SSO_BUS_URL": url or ""}))
        await nursery.start(bus.run)
        with trio.fail_after(CONNECT_S):
            await bus.connected.wait()
        user = User.from_row(await database.row(_USER))
        gsids = [str(uuid.uuid4()) for _ in range(SESSIONS)]
        holders = [workers[at % len(workers)] for at in range(SESSIONS)]
        for start in range(0, SESSIONS, 2000):
            await database.value(_REGISTER, gsids=gsids[start : start + 2000], workers=holders[start : start + 2000])
        sessions = GameSessionStore(database, bus, 1, 1)
        took: list[float] = []
        end = trio.current_time() + seconds

        async def confirm_until_the_end() -> None:
            while gsids and trio.current_time() < end:
                gsid = gsids.pop()
                began = trio.current_time()
                if how == "in the transaction":
                    await database.value(_CONFIRM_AND_NOTIFY, gsid=gsid)
                else:
                    assert await sessions.confirm(gsid, user)
                took.append(trio.current_time() - began)

        began = trio.current_time()
        async with trio.open_nursery() as clients:
            for _ in range(CLIENTS):
                clients.start_soon(confirm_until_the_end)
        await bus.wait_until_sent()
        lasted = trio.current_time() - began
        nursery.cancel_scope.cancel()
    return {
        "bus": how,
        "workers": len(workers),
        "confirmed/s": len(took) / lasted,
        "p50 ms": statistics.median(took) * 1e3,
        "p99 ms": statistics.quantiles(took, n=100)[98] * 1e3,
        "topics": len(took),
        "sent": len(took) if how == "in the transaction" else bus.sent,
    }


def measure_confirmations(dsn: str, url: str | None, count: int, seconds: float, how: str) -> dict[str, Any]:
    progress(f"{how}, {count} workers …")
    with listeners(dsn, count, url) as (process, workers):
        row = trio.run(confirm_all, dsn, url, workers, seconds, how)
        received, _ = process.communicate("")
    return {**row, "received": int(received)}


class Client:
    def __init__(self, server: Server) -> None:
        self._address = server.base_url.removeprefix("http://")
        self._connection = http.client.HTTPConnection(self._address)
        self.polling = http.client.HTTPConnection(self._address)

    def post(self, name: str, **body: str) -> dict[str, Any]:
        self.start(self._connection, name, **body)
        answer: dict[str, Any] = orjson.loads(self._connection.getresponse().read())
        return answer

    def start(self, connection: http.client.HTTPConnection, name: str, **body: str) -> None:
        connection.request("POST", f"{PATH}/{name}", orjson.dumps(body), {"Content-Type": "application/json"})


async def wake(poller: Client, closer: Client, dsn: str, rounds: int) -> list[float]:
    took = []
    async with Database.open(dsn, 1) as database:
        for number in range(rounds):
            progress(f"wake-up {number} …")
            gsid = poller.post("getGsid")["gsid"]
            poller.start(poller.polling, "getGsidResult", gsid=gsid)
            while not await database.value(_POLLED, gsid=gsid):  # noqa: ASYNC110 - a row in the database
                await trio.sleep(0.005)
            await trio.sleep(0.01)  # until the worker is idle
            began = time.perf_counter()
            closer.start(closer._connection, "closeGsid", gsid=gsid, status="Success")
            answer = orjson.loads(poller.polling.getresponse().read())
            took.append(time.perf_counter() - began)
            assert answer.get("error") == "session closed", answer
            closer._connection.getresponse().read()
    return took


def measure_wake_ups(dsn: str, url: str | None, rounds: int) -> list[dict[str, Any]]:
    settings = SETTINGS | {"SSO_DATABASE_URL": dsn, "SSO_SECRET_KEY": MasterKey.generate().text()}
    settings |= {"SSO_RATE_GETGSID": "0"} | ({"SSO_BUS_URL": url} if url else {})
    rows = []
    with ExitStack() as stack:
        first, second = (
            stack.enter_context(running(Path(stack.enter_context(tempfile.TemporaryDirectory())), **settings))
            for _ in range(2)
        )
        time.sleep(2)  # until both are connected and idle
        for where, closing in (("same node", first), ("other node", second)):
            trio.run(wake, Client(first), Client(closing), dsn, 20)  # warms up
            took = trio.run(wake, Client(first), Client(closing), dsn, rounds)
            percentiles = statistics.quantiles(took, n=100)
            row = {"bus": "NATS" if url else "PostgreSQL", "closed at": where, "wake-ups": rounds}
            rows.append({**row, "p50 ms": percentiles[49] * 1e3, "p99 ms": percentiles[98] * 1e3})
    return rows


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--rounds", type=int, default=300, help="number of wake-ups")
    options: argparse.Namespace = parser.parse_args()
    configure_logging("console", "warning")
    start.SETTINGS["max_connections"] = "300"
    confirmations: list[dict[str, Any]] = []
    wake_ups: list[dict[str, Any]] = []
    with ExitStack() as stack:
        database = stack.enter_context(postgres.running())
        url = stack.enter_context(nats_server()).url if PROGRAM else None
        if url is None:
            sys.stderr.write("NATS is left out: nats-server is not installed\n")
        for count in LISTENERS:
            for how in ("in the transaction", "PostgreSQL", *(["NATS"] if url else [])):
                bus_url = url if how == "NATS" else None
                row = measure_confirmations(database.fresh(), bus_url, count, options.seconds, how)
                confirmations.append(row)
        show(confirmations, None)
        print(flush=True)
        for bus_url in (None, *([url] if url else [])):
            wake_ups += measure_wake_ups(database.fresh(), bus_url, options.rounds)
    show(wake_ups, None)
    if options.out:
        options.out.write_bytes(orjson.dumps({"confirmations": confirmations, "wake-ups": wake_ups}))


if __name__ == "__main__":
    main()
