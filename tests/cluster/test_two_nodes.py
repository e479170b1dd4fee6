"""Two nodes, one PostgreSQL and one NATS server. Games and sites use one node, browsers the other; one of them dies."""

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest
import trio

from scripts.local_cluster import administrator, clients, load
from scripts.local_cluster.ledger import Ledger
from scripts.local_cluster.load import Plan
from scripts.local_cluster.services import NO_RATE_LIMITS
from sso.core.encryption import MasterKey
from tests.kit.long_tests import takes_long
from tests.kit.nats import NatsServer, nats_server, needs_nats
from tests.kit.postgres import Postgres
from tests.kit.server import QUICK, Server, running

PLAN = Plan(seconds=8.0, rate=4.0, users=5, check_after_s=1.0)
BEFORE_A_FAULT = 3  # logins; a machine that stalls starts few


class Nodes(NamedTuple):
    for_games: Server
    for_browsers: Server
    nats: NatsServer


@pytest.fixture(scope="module")
def nodes(postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    dsn = postgres_server.fresh()
    with nats_server() as nats, started(dsn, nats.url, tmp_path_factory.mktemp) as (first, second):
        first.apply(load.document())
        first.sso("role", "assign", administrator.LOGIN, "root", "--app", "1", "--yes")
        yield Nodes(first, second, nats)
    postgres_server.drop(dsn)


@contextmanager
def started(dsn: str, bus_url: str, folder: Callable[[str], Path]) -> Iterator[tuple[Server, Server]]:
    settings = {
        "SSO_DATABASE_URL": dsn,
        "SSO_SECRET_KEY": MasterKey.generate().text(),
        "SSO_BUS_URL": bus_url,
        "SSO_WORKERS": "2",
        **QUICK,
        **NO_RATE_LIMITS,
    }
    with running(folder("games"), **settings) as first, running(folder("browsers"), **settings) as second:
        yield first, second


async def run_with(nodes: Nodes, faults: Sequence[Callable[[], None]]) -> Ledger:
    """Runs the load; the faults happen in the middle of it, one after the other."""
    ledger = Ledger()

    async def cause_faults() -> None:
        for fault in faults:
            enough = ledger.delivered + BEFORE_A_FAULT
            while ledger.delivered < enough:  # noqa: ASYNC110 - a counter sends no event
                await trio.sleep(0.05)
            await trio.to_thread.run_sync(fault)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(cause_faults)
        urls = (nodes.for_games.base_url, nodes.for_browsers.base_url)
        await load.run_load(PLAN, ledger, *urls)
    return ledger


def kill_workers(server: Server) -> None:
    for pid in server.workers():
        os.kill(pid, signal.SIGKILL)


def restart(nats: NatsServer) -> None:
    nats.kill()
    nats.start()


@needs_nats
@pytest.mark.parametrize(
    "targets",
    [
        pytest.param(("games", "browsers", "nats"), id="all"),
        *(pytest.param((target,), id=target, marks=takes_long) for target in ("games", "browsers", "nats")),
    ],
)
def test_no_acknowledged_write_is_lost(nodes: Nodes, targets: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "REQUEST_S", 60.0)
    faults: dict[str, Callable[[], None]] = {
        "games": partial(kill_workers, nodes.for_games),
        "browsers": partial(kill_workers, nodes.for_browsers),
        "nats": partial(restart, nodes.nats),
    }
    ledger = trio.run(run_with, nodes, [faults[target] for target in targets])
    assert ledger.is_clean, ledger.report()
    assert ledger.delivered >= max(ledger.confirmed, BEFORE_A_FAULT), ledger.report()
    assert ledger.tokens_issued
    assert ledger.roles
