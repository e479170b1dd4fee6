"""The deadlines of database calls: extended by the time in which this process itself was busy, and limited by its end.

A statement takes several rounds of the event loop. During a burst of requests the rounds are long, and a database that
answers in time would seem to be unavailable.
"""

from collections.abc import Callable
from typing import TypeVar

import trio

from sso.core.thread_pool import ThreadPool

T = TypeVar("T")

ROUND_S = 0.02  # shorter rounds are normal and do not extend deadlines


class CallDeadlines(trio.abc.Instrument):
    """Measures each round of the event loop and extends the deadline of every scope in ``scopes`` by a long one."""

    def __init__(self) -> None:
        self._round_began = 0.0
        self.end = float("inf")  # of all calls
        self.scopes: set[trio.CancelScope] = set()

    def open_scope(self, deadline: float) -> trio.CancelScope:
        """Returns the scope of a call, which must remove it from ``scopes`` afterwards."""
        scope = trio.CancelScope(shield=True, deadline=min(deadline, self.end))
        self.scopes.add(scope)
        return scope

    def end_calls_by(self, moment: float) -> None:
        """Lets no call, of those that run and of later ones, take longer than until ``moment``."""
        self.end = min(self.end, moment)
        for scope in self.scopes:
            scope.deadline = min(scope.deadline, moment)

    async def run_in_thread(self, threads: ThreadPool, function: Callable[[], T]) -> T:
        """A transaction that computes beyond its deadline may still commit, unless the end of all calls has come."""
        result = await threads.run(function)
        if trio.current_time() >= self.end:
            await trio.lowlevel.checkpoint_if_cancelled()
        return result

    def after_io_wait(self, timeout: float) -> None:
        self._round_began = trio.current_time()

    def before_io_wait(self, timeout: float) -> None:
        if self.scopes:
            duration = trio.current_time() - self._round_began
            if duration > ROUND_S:
                for scope in self.scopes:
                    scope.deadline = min(scope.deadline + duration, self.end)
