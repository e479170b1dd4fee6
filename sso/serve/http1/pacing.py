"""Limits how many requests start in one round of the event loop.

Trio runs everything that is ready in one round, so a task that needs several rounds (a database statement takes some)
waits for all of it. If thousands of requests arrived together and all started at once, each round would take a second
and the database would seem unavailable. Most of them wait in a queue instead, and the rounds stay short.
"""

import trio

MAX_STARTS = 50  # per round; each takes about a fifth of a millisecond


class RequestPacing(trio.abc.Instrument):
    def __init__(self) -> None:
        self._starts = 0
        self._queue = trio.lowlevel.ParkingLot()
        self._queued = trio.Event()

    def after_io_wait(self, timeout: float) -> None:
        """Trio calls this when a new round begins."""
        self._starts = 0

    def try_start(self) -> bool:
        """Returns True if a request may start now; otherwise the caller must await ``wait_for_start``."""
        if self._starts >= MAX_STARTS or self._queue:
            return False
        self._starts += 1
        return True

    async def wait_for_start(self) -> None:
        self._queued.set()
        await self._queue.park()

    async def run(self) -> None:
        trio.lowlevel.add_instrument(self)
        try:
            while True:
                await self._queued.wait()
                self._queued = trio.Event()
                while self._queue:
                    self._queue.unpark(count=MAX_STARTS)
                    await trio.lowlevel.checkpoint()
        finally:
            trio.lowlevel.remove_instrument(self)
