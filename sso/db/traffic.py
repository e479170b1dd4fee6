"""When a batch may begin: one after the other, so that what waits meanwhile makes for larger ones.

Under load a statement for many costs little more than one for a few, in this process as in PostgreSQL; but of eight
kinds of batches that all run at once each is small. A lone one begins at once, and none waits for what does not keep
the processor busy: beside one that takes long, for a lock or a disk or a network, the next begins.
"""

from collections import deque

import outcome
import trio

SLOW_S = 0.002


class Traffic:
    def __init__(self) -> None:
        self._under_way: list[float] = []  # since when, the newest last
        self._line: deque[trio.lowlevel.Task] = deque()
        self._is_watched = False

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
        """As long as somebody waits: if who is under way takes long, all of them go on."""
        while self._line:
            await trio.sleep_until(self._under_way[-1] + SLOW_S)
            if self._is_free():
                while self._line:
                    self._let_one_in()
        self._is_watched = False
