"""A small thread pool for work that would block the event loop.

``trio.to_thread.run_sync`` costs a fifth of a millisecond of CPU time per call. This pool takes half of that: it copies
no context, abandons no thread, and belongs to one event loop.
"""

import os
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar, TypeVarTuple

import outcome
import trio
from msgspec import Struct

Arguments = TypeVarTuple("Arguments")
Result = TypeVar("Result")


def available_cpus() -> int:
    """Returns the number of CPUs that this process may use, which may be fewer than the machine has."""
    return len(os.sched_getaffinity(0))


class _Job(Struct, frozen=True, eq=False):
    run: Callable[[], Any]
    task: trio.lowlevel.Task


class ThreadPool:
    """Runs jobs in order of arrival, at most ``max_threads`` at a time.

    A waiting job can be cancelled; a running one is always finished. If no thread can be started, jobs run on the event
    loop.
    """

    def __init__(self, max_threads: int) -> None:
        self._max_threads = max_threads
        self._running = 0
        self._waiting: deque[_Job] = deque()

    async def run(self, function: Callable[[*Arguments], Result], *arguments: *Arguments) -> Result:
        """Returns ``function(*arguments)``, called in a thread."""
        job = _Job(lambda: function(*arguments), trio.lowlevel.current_task())
        self._waiting.append(job)
        if self._running < self._max_threads and not self._start_thread() and not self._running:
            self._waiting.pop()
            return function(*arguments)

        def abort(_: object) -> trio.lowlevel.Abort:
            try:
                self._waiting.remove(job)
            except ValueError:
                return trio.lowlevel.Abort.FAILED
            return trio.lowlevel.Abort.SUCCEEDED

        result: Result = await trio.lowlevel.wait_task_rescheduled(abort)
        return result

    def _start_thread(self) -> bool:
        """Returns False if no thread can be started."""
        token = trio.lowlevel.current_trio_token()
        try:
            trio.lowlevel.start_thread_soon(partial(self._run_jobs, token), partial(self._thread_done, token))
        except RuntimeError:
            return False
        self._running += 1
        return True

    def _run_jobs(self, token: trio.lowlevel.TrioToken) -> None:
        """Runs jobs until none is waiting; called in the thread."""
        while True:
            try:
                job = self._waiting.popleft()
            except IndexError:
                return
            token.run_sync_soon(trio.lowlevel.reschedule, job.task, outcome.capture(job.run))

    def _thread_done(self, token: trio.lowlevel.TrioToken, result: outcome.Outcome[None]) -> None:
        """Called in the thread, after which Trio may reuse it."""
        with suppress(trio.RunFinishedError):
            token.run_sync_soon(self._on_thread_done, token, result)

    def _on_thread_done(self, token: trio.lowlevel.TrioToken, result: outcome.Outcome[None]) -> None:
        self._running -= 1
        result.unwrap()
        # A job may have arrived after the thread had looked for one.
        if self._waiting and not self._start_thread() and not self._running:
            self._run_jobs(token)
