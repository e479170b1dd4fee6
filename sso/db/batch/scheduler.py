"""Decides when the batches of all operations start: two at a time, so that waiting batches grow.

A statement for many items costs little more than one for a few, both here and in PostgreSQL. If the batches of all
operations ran at once, each would be small. With one at a time, this process and PostgreSQL would often wait for each
other. So a batch starts at once only if fewer than two others run. A batch that takes long (it waits for a lock, a disk
or a network, and leaves the CPU idle) does not count. While all of them take long, more and more start together.

A batch that had to wait, or that follows one of several items, lets the event loop run for a moment before it starts,
so that callers of the previous batch can join it. A lone call starts at once.
"""

import math
from collections import deque

import outcome
import trio

SLOW_S = 0.003
MAX_QUICK = 2  # batches at a time that do not take long
GATHERING_TURNS = 4  # of the event loop
MAX_SLOW_ROUNDS = 6  # then 2**6 batches start together


class BatchScheduler:
    def __init__(self) -> None:
        self._running: list[float] = []  # when each batch started, the latest last
        self._queue: deque[trio.lowlevel.Task] = deque()
        self._is_watching = False
        self._slow_rounds = 0
        self._shared_until = 0.0  # how long callers of the last batch, of several items, are expected

    async def enter(self, *, has_waited: bool = False) -> float:
        """Waits until the batch may start. Returns its start time, the argument of ``leave``.

        ``has_waited``: the batch has waited for the previous one of its operation. Cannot be cancelled, because the
        caller leads a batch for other callers.
        """
        if not self._queue and self._may_start():
            started = self._start()
            gathers = has_waited or started < self._shared_until
        else:
            self._queue.append(trio.lowlevel.current_task())
            if not self._is_watching:
                self._is_watching = True
                trio.lowlevel.spawn_system_task(self._watch)
            started = await trio.lowlevel.wait_task_rescheduled(lambda _: trio.lowlevel.Abort.FAILED)
            gathers = True
        return await self._gather(started) if gathers else started

    async def _gather(self, reserved: float) -> float:
        """Lets the event loop run what the previous batch has woken. Returns the time when the batch starts."""
        for _ in range(GATHERING_TURNS):
            await trio.lowlevel.cancel_shielded_checkpoint()
            started = trio.current_time()
            if started > reserved + SLOW_S:
                break
        self._running.remove(reserved)
        self._running.append(started)
        return started

    def leave(self, started: float, items: int = 1) -> None:
        self._running.remove(started)
        now = trio.current_time()
        if now < started + SLOW_S:
            self._slow_rounds = 0
        self._shared_until = now + SLOW_S if items > 1 else 0.0
        if self._queue and self._may_start():
            self._start_next()

    def _may_start(self) -> bool:
        return self._next_start() <= trio.current_time()

    def _next_start(self) -> float:
        """Returns when one more batch may start, even if none of the running ones ends before."""
        return self._running[-MAX_QUICK] + SLOW_S if len(self._running) >= MAX_QUICK else -math.inf

    def _start(self) -> float:
        self._running.append(trio.current_time())
        return self._running[-1]

    def _start_next(self) -> None:
        trio.lowlevel.reschedule(self._queue.popleft(), outcome.Value(self._start()))

    async def _watch(self) -> None:
        """Runs while a batch waits. While the running batches take long, it starts one more, then two, then four."""
        while self._queue:
            await trio.sleep_until(self._next_start())
            if self._may_start():
                for _ in range(min(1 << self._slow_rounds, len(self._queue))):
                    self._start_next()
                self._slow_rounds = min(self._slow_rounds + 1, MAX_SLOW_ROUNDS)
        self._is_watching = False
