"""Threads for work that takes long: on another core, while the event loop goes on.

To hand something to a thread in Trio's own way costs a fifth of a millisecond of computing, with all that it takes care
of. This way takes half of it: no contexts, no threads that are given up, and one event loop for the life of an object.
"""

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar, TypeVarTuple

import outcome
import trio

Given = TypeVarTuple("Given")
Found = TypeVar("Found")


@dataclass(frozen=True, eq=False)
class _Work:
    do: Callable[[], Any]
    task: trio.lowlevel.Task


class Threads:
    """So many at a time; work is taken up in the order in which it came. What has begun is always finished."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._running = 0
        self._waiting: deque[_Work] = deque()

    async def run(self, work: Callable[[*Given], Found], *given: *Given) -> Found:
        mine = _Work(lambda: work(*given), trio.lowlevel.current_task())
        self._waiting.append(mine)
        if self._running < self._most and not self._has_begun() and not self._running:
            self._waiting.pop()
            return work(*given)

        def call_off(_: object) -> trio.lowlevel.Abort:
            try:
                self._waiting.remove(mine)
            except ValueError:
                return trio.lowlevel.Abort.FAILED
            return trio.lowlevel.Abort.SUCCEEDED

        found: Found = await trio.lowlevel.wait_task_rescheduled(call_off)
        return found

    def _has_begun(self) -> bool:
        """False if there is no thread to be had."""
        loop = trio.lowlevel.current_trio_token()
        try:
            trio.lowlevel.start_thread_soon(partial(self._work, loop), partial(self._have_worked, loop))
        except RuntimeError:
            return False
        self._running += 1
        return True

    def _work(self, loop: trio.lowlevel.TrioToken) -> None:
        """In a thread, if there is one: whatever waits."""
        while True:
            try:
                work = self._waiting.popleft()
            except IndexError:
                return
            loop.run_sync_soon(trio.lowlevel.reschedule, work.task, outcome.capture(work.do))

    def _have_worked(self, loop: trio.lowlevel.TrioToken, how: outcome.Outcome[None]) -> None:
        """Still in the thread, which is then free for others."""
        with suppress(trio.RunFinishedError):
            loop.run_sync_soon(self._end, loop, how)

    def _end(self, loop: trio.lowlevel.TrioToken, how: outcome.Outcome[None]) -> None:
        self._running -= 1
        how.unwrap()
        if self._waiting and not self._has_begun() and not self._running:  # who came in the last instant
            self._work(loop)
