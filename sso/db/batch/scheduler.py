"""When a batch may begin: one after the other, so that what waits meanwhile makes for larger ones.

Under load a statement for many costs little more than one for a few, in this process as in PostgreSQL; but of eight
kinds of batches that all run at once each is small. A lone one begins at once, and nobody waits long for what does not
keep the processor busy: beside one that takes long, for a lock or a disk or a network, the next begins; and if they all
do, there is soon no waiting here at all but for that first moment.
"""

from collections import deque

import outcome
import trio

SLOW_S = 0.003
MAX_ROW = 6


class BatchScheduler:
    def __init__(self) -> None:
        self._under_way: list[float] = []  # since when, the newest last
        self._line: deque[trio.lowlevel.Task] = deque()
        self._is_watched = False
        self._slow_in_a_row = 0

    async def enter(self) -> float:
        """When it began, to be told when it leaves. Not to be called off: who waits here leads others."""
        if not self._line and self._is_free():
            return self._begun()
        self._line.append(trio.lowlevel.current_task())
        if not self._is_watched:
            self._is_watched = True
            trio.lowlevel.spawn_system_task(self._watch)
        began: float = await trio.lowlevel.wait_task_rescheduled(lambda _: trio.lowlevel.Abort.FAILED)
        return began

    def leave(self, began: float) -> None:
        self._under_way.remove(began)
        if trio.current_time() < began + SLOW_S:
            self._slow_in_a_row = 0
        if self._line and self._is_free():
            self._let_one_in()

    def _begun(self) -> float:
        self._under_way.append(trio.current_time())
        return self._under_way[-1]

    def _is_free(self) -> bool:
        return not self._under_way or self._under_way[-1] + SLOW_S <= trio.current_time()

    def _let_one_in(self) -> None:
        trio.lowlevel.reschedule(self._line.popleft(), outcome.Value(self._begun()))

    async def _watch(self) -> None:
        """As long as somebody waits: while who is under way takes long, one goes on, then two, then four."""
        while self._line:
            await trio.sleep_until(self._under_way[-1] + SLOW_S)
            if self._is_free():
                for _ in range(min(1 << self._slow_in_a_row, len(self._line))):
                    self._let_one_in()
                self._slow_in_a_row = min(self._slow_in_a_row + 1, MAX_ROW)
        self._is_watched = False
