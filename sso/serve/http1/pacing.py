"""No more than so many requests begin in one round of the event loop.

All that is ready runs in one round, and whoever waits for several rounds (a statement on its way to the database and
back takes some) waits for all of it. When thousands come at once they would make every round last a second, and the
database would seem to be away. So most of them wait in line, and the rounds stay short.
"""

import trio

AT_ONCE = 50  # of about a fifth of a millisecond each


class RequestPacing(trio.abc.Instrument):
    def __init__(self) -> None:
        self._begun = 0
        self._line = trio.lowlevel.ParkingLot()
        self._somebody = trio.Event()

    def after_io_wait(self, timeout: float) -> None:
        """A new round."""
        self._begun = 0

    def begin(self) -> bool:
        """A request begins, if it may now; else it must wait."""
        if self._begun >= AT_ONCE or self._line:
            return False
        self._begun += 1
        return True

    async def wait(self) -> None:
        self._somebody.set()
        await self._line.park()

    async def run(self) -> None:
        trio.lowlevel.add_instrument(self)
        try:
            while True:
                await self._somebody.wait()
                self._somebody = trio.Event()
                while self._line:
                    self._line.unpark(count=AT_ONCE)
                    await trio.lowlevel.checkpoint()
        finally:
            trio.lowlevel.remove_instrument(self)
