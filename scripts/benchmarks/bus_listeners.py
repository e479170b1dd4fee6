"""The listening workers of ``scripts/bench bus``: many connections in one process of their own.

``python -m scripts.benchmarks.bus_listeners DSN COUNT [BUS_URL]`` prints the names of the workers in one line, and at
the end of its input how many messages all of them have received.
"""

import sys

import trio

from sso.bus.wiring import build_bus
from sso.config import load
from sso.db.database import Database
from sso.log import configure_logging


async def main(dsn: str, count: int, url: str | None) -> None:
    settings = load(None, {"SSO_BUS_URL": url or ""})
    async with Database.open(dsn, 1) as database, trio.open_nursery() as nursery:
        buses = [build_bus(database, settings) for _ in range(count)]
        for bus in buses:
            await nursery.start(bus.run)
            with trio.fail_after(20):
                await bus.connected.wait()
        print(" ".join(bus.worker for bus in buses), flush=True)
        await trio.to_thread.run_sync(sys.stdin.read)
        print(sum(bus.received for bus in buses), flush=True)
        nursery.cancel_scope.cancel()


if __name__ == "__main__":
    configure_logging("console", "warning")
    trio.run(main, sys.argv[1], int(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else None)
