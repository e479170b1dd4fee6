from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from sso.bus.bus import Bus
from sso.bus.wiring import build_bus
from sso.config import Settings, load
from sso.db.database import Database

TIMEOUT_S = 60  # generous, for slow machines


def nats_settings(url: str, ca_file: Path | None = None) -> Settings:
    return load(None, {"SSO_BUS_URL": url, **({"SSO_BUS_CA_FILE": str(ca_file)} if ca_file else {})})


@asynccontextmanager
async def running_bus(database: Database, settings: Settings | None = None) -> AsyncIterator[Bus]:
    bus = build_bus(database, settings)
    async with trio.open_nursery() as nursery:
        await nursery.start(bus.run)
        with trio.fail_after(TIMEOUT_S):
            await bus.connected.wait()
        yield bus
        nursery.cancel_scope.cancel()


async def received(signals: trio.MemoryReceiveChannel[None]) -> None:
    with trio.fail_after(TIMEOUT_S):
        await signals.receive()


def is_empty(signals: trio.MemoryReceiveChannel[None]) -> bool:
    return signals.statistics().current_buffer_used == 0


async def until_disconnected(bus: Bus) -> None:
    with trio.fail_after(TIMEOUT_S):
        while bus.connected.is_set():  # noqa: ASYNC110 - the event is replaced when the connection is lost
            await trio.sleep(0.001)


async def until_connected(bus: Bus) -> None:
    with trio.fail_after(TIMEOUT_S):
        await bus.connected.wait()
