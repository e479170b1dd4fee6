"""The pause of a connection after a refusal.

One task wakes all connections, a part of them at each tick. A timer for each would cost as much as the refusal.
"""

from collections import deque

import trio
from trio.lowlevel import ParkingLot

TICK_S = 0.05
# The next request of a connection is read so much later. Clients that obey Retry-After do not notice. Others would take
# the time that the service needs for answers: a refusal costs a third of a quick one.
TICKS = 10


class RefusalPause:
    def __init__(self) -> None:
        self._lots = deque(ParkingLot() for _ in range(TICKS))  # the next one to wake comes first
        self._has_waiting = trio.Event()

    async def wait(self) -> None:
        self._has_waiting.set()
        await self._lots[-1].park()

    async def run(self) -> None:
        while True:
            await self._has_waiting.wait()
            due = trio.current_time()
            while any(self._lots):
                due += TICK_S
                await trio.sleep_until(due)  # a late tick does not delay the next one
                self._lots[0].unpark_all()
                self._lots.rotate(-1)
            self._has_waiting = trio.Event()
