"""A bounded fair queue for expensive work: callers take turns by lane, so that no lane delays the others for long.

A caller names its lanes, for example its network and its account. Its turn comes after the turns of the callers that
wait in the same lanes, and before the second turn of any other lane. If a thousand callers wait in one lane, the first
caller of another lane waits for one or two of them only. When the queue is full, the caller with the latest turn is
refused, and so is one who has waited for ``max_wait_s``.

With ``max_per_lane``, a lane holds at most that many slots at a time. Its other callers wait, even if slots are free,
in the order of their turns: no caller overtakes another one with which it shares a lane.
"""

import bisect
import itertools
import math
from collections import Counter
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager

import trio


class QueueFull(Exception):
    """The queue refuses this caller, because it is full or the caller has waited for too long."""


class _Waiter:
    __slots__ = ("is_admitted", "lanes", "number", "turn", "woken")

    def __init__(self, turn: int, number: int, lanes: tuple[Hashable, ...]) -> None:
        self.turn = turn
        self.number = number
        self.lanes = lanes
        self.woken = trio.Event()
        self.is_admitted = False

    def __lt__(self, other: "_Waiter") -> bool:
        return (self.turn, self.number) < (other.turn, other.number)


class FairQueue:
    def __init__(
        self, slots: int, max_waiting: int, *, max_wait_s: float = math.inf, max_per_lane: int | None = None
    ) -> None:
        self.slots = slots
        self.max_waiting = max_waiting
        self._max_wait_s = max_wait_s
        self._max_per_lane = max_per_lane
        self._taken = 0
        self._held: Counter[Hashable] = Counter()  # slots by lane, if lanes are limited
        self._waiting: list[_Waiter] = []  # sorted, the next one first
        self._turns: dict[Hashable, list[int]] = {}  # lane -> the turns of its waiters, ascending
        self._turn = 0  # the latest waiter that was admitted
        self._numbers = itertools.count()

    def __len__(self) -> int:
        """Returns how many callers wait."""
        return len(self._waiting)

    @asynccontextmanager
    async def slot(self, *lanes: Hashable) -> AsyncIterator[None]:
        """Holds a slot within the block. Raises QueueFull if the caller is refused."""
        await self._enter(lanes)
        try:
            yield
        finally:
            self._leave(lanes)

    async def _enter(self, lanes: tuple[Hashable, ...]) -> None:
        await trio.lowlevel.checkpoint_if_cancelled()
        is_first = self._max_per_lane is None or not any(lane in self._turns for lane in lanes)
        if self._taken < self.slots and is_first and self._may_enter(lanes):
            self._take_slot(lanes)
            return
        waiter = _Waiter(self._next_turn(lanes), next(self._numbers), lanes)
        self._add(waiter)
        with trio.move_on_after(self._max_wait_s) as scope:
            await self._wait(waiter)
        if scope.cancelled_caught or not waiter.is_admitted:
            raise QueueFull

    async def _wait(self, waiter: _Waiter) -> None:
        """Waits until the caller is admitted or refused. If it is cancelled, it holds no slot."""
        try:
            await waiter.woken.wait()
        except trio.Cancelled:
            if waiter.is_admitted:
                self._leave(waiter.lanes)
            elif not waiter.woken.is_set():
                self._remove(waiter)
                self._admit_waiters()  # it may have been in the way of another one
            raise

    def _leave(self, lanes: tuple[Hashable, ...]) -> None:
        self._taken -= 1
        if self._max_per_lane is not None:
            self._held -= Counter(lanes)
        self._admit_waiters()

    def _admit_waiters(self) -> None:
        """Hands free slots to the next waiters that may enter."""
        while self._taken < self.slots:
            waiter = self._next_waiter()
            if waiter is None:
                return
            self._remove(waiter)
            self._turn = max(self._turn, waiter.turn)
            self._take_slot(waiter.lanes)
            waiter.is_admitted = True
            waiter.woken.set()

    def _may_enter(self, lanes: tuple[Hashable, ...]) -> bool:
        return self._max_per_lane is None or all(self._held[lane] < self._max_per_lane for lane in lanes)

    def _next_waiter(self) -> _Waiter | None:
        """Returns the first waiter that may enter and shares no lane with an earlier one."""
        passed: set[Hashable] = set()
        for waiter in self._waiting:
            if self._may_enter(waiter.lanes) and passed.isdisjoint(waiter.lanes):
                return waiter
            passed.update(waiter.lanes)
        return None

    def _take_slot(self, lanes: tuple[Hashable, ...]) -> None:
        self._taken += 1
        if self._max_per_lane is not None:
            self._held.update(lanes)

    def _next_turn(self, lanes: tuple[Hashable, ...]) -> int:
        return max(self._turn, *(self._turns[lane][-1] + 1 for lane in lanes if lane in self._turns), 0)

    def _add(self, waiter: _Waiter) -> None:
        if len(self._waiting) >= self.max_waiting:
            if not self._waiting or self._waiting[-1].turn <= waiter.turn:
                raise QueueFull
            refused = self._waiting[-1]
            self._remove(refused)
            refused.woken.set()
        bisect.insort(self._waiting, waiter)
        for lane in waiter.lanes:
            bisect.insort(self._turns.setdefault(lane, []), waiter.turn)

    def _remove(self, waiter: _Waiter) -> None:
        del self._waiting[bisect.bisect_left(self._waiting, waiter)]
        for lane in waiter.lanes:
            turns = self._turns[lane]
            turns.remove(waiter.turn)
            if not turns:
                del self._turns[lane]
