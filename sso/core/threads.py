"""Threads for work that takes long: on another core, while the event loop goes on.

To hand something to a thread in Trio's own way costs a fifth of a millisecond of computing, with all that it takes care
of: contexts, limits, being called off. This way takes half of it, and none of that care but a limit.
"""

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar, TypeVarTuple

import outcome
import trio

Given = TypeVarTuple("Given")
Found = TypeVar("Found")


class Threads:
    """So many at a time; work is taken up in the order in which it came, and always finished."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._running = 0
        self._waiting: deque[tuple[Callable[[], Any], trio.lowlevel.Task]] = deque()
        self._token: trio.lowlevel.TrioToken | None = None

    async def run(self, work: Callable[[*Given], Found], *given: *Given) -> Found:
        self._token = trio.lowlevel.current_trio_token()
        self._waiting.append((lambda: work(*given), trio.lowlevel.current_task()))
        if self._running < self._most and not self._has_begun() and not self._running:
            self._waiting.pop()
            return work(*given)
        found: Found = await trio.lowlevel.wait_task_rescheduled(lambda _: trio.lowlevel.Abort.FAILED)
        return found

    def _has_begun(self) -> bool:
        """False if there is no thread to be had."""
        try:
            trio.lowlevel.start_thread_soon(self._work, self._have_worked)
        except RuntimeError:
            return False
        self._running += 1
        return True

    def _work(self) -> None:
        """In a thread, if there is one: whatever waits."""
        assert self._token is not None
        while True:
            try:
                work, task = self._waiting.popleft()
            except IndexError:
                return
            self._token.run_sync_soon(trio.lowlevel.reschedule, task, outcome.capture(work))

    def _have_worked(self, how: outcome.Outcome[None]) -> None:
        """Still in the thread, which is then free for others."""
        assert self._token is not None
        with suppress(trio.RunFinishedError):
            self._token.run_sync_soon(self._end, how)

    def _end(self, how: outcome.Outcome[None]) -> None:
        self._running -= 1
        how.unwrap()
        if self._waiting and not self._has_begun() and not self._running:  # who came in the last instant
            self._work()
