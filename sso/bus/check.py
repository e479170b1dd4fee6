"""Checks the bus for `sso doctor`: a message from one connection to another."""

import time

import trio

from sso.bus.bus import Bus
from sso.bus.subscriptions import Rescans
from sso.bus.transport import BusUnavailable
from sso.bus.wiring import build_bus
from sso.config import Settings
from sso.db.database import Database

CHECK_S = 5.0
TOPIC = "check"


async def measure_message(settings: Settings, dsn: str) -> float:
    """Returns the seconds that a message took. Raises BusUnavailable."""
    async with Database.open(dsn, 2) as database:
        sender, receiver = build_bus(database, settings), build_bus(database, settings)
        with trio.move_on_after(CHECK_S):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(sender.run)
                nursery.start_soon(receiver.run)
                seconds = await _measure(sender, receiver)
                nursery.cancel_scope.cancel()
            return seconds
    raise BusUnavailable(sender.failure or receiver.failure or "a message does not arrive")


async def _measure(sender: Bus, receiver: Bus) -> float:
    with receiver.subscribe(TOPIC, Rescans.NEVER) as signals:
        await sender.connected.wait()
        await receiver.connected.wait()
        began = time.perf_counter()
        sender.publish(TOPIC, receiver.worker)
        await signals.receive()
        return time.perf_counter() - began
