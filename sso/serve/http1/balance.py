"""How many connections each worker holds, where all workers see it: who has more lets the others go first.

All workers listen on the same socket. Left to themselves, the one that wakes first takes all that wait there, and a
proxy's thirty connections are then served by one core while the other has nothing to do.
"""

import mmap
from collections.abc import Iterator
from typing import Protocol

MAX_WORKERS = 256
_BYTES = 8
NOT_ACCEPTING = -1  # takes connections in this place
_SPREAD = 8  # a worker may be ahead by one in so many: what is nearly even is not worth waiting for


class ConnectionCounts(Protocol):
    """Numbers in a row: a list, or memory that processes share."""

    def __iter__(self) -> Iterator[int]: ...
    def __setitem__(self, number: int, count: int, /) -> None: ...


class WorkerSlot:
    """What a worker tells of itself and sees of the others. What it sees may be a moment old, which does no harm."""

    def __init__(self, counts: ConnectionCounts | None = None, mine: int = 0) -> None:
        self._counts = counts if counts is not None else [NOT_ACCEPTING]
        self._mine = mine
        self.inside = 0
        self._counts[mine] = NOT_ACCEPTING

    def open(self) -> None:
        """From now on it takes connections."""
        self._tell()

    def enter(self) -> None:
        self.inside += 1
        self._tell()

    def leave(self) -> None:
        self.inside -= 1
        self._tell()

    def give_up(self) -> None:
        """Its successor may be there already: from now on that one is meant."""
        self._counts, self._mine = [self.inside], 0

    @property
    def others(self) -> list[int]:
        """Of those who take connections, too, how many each has."""
        return [count for number, count in enumerate(self._counts) if number != self._mine and count != NOT_ACCEPTING]

    @property
    def step(self) -> int:
        """How far to go ahead of the others at a time."""
        return 1 + self.inside // _SPREAD

    def _tell(self) -> None:
        self._counts[self._mine] = self.inside


class WorkerSlots:
    """Made before the workers are forked."""

    def __init__(self) -> None:
        self._counts = memoryview(mmap.mmap(-1, MAX_WORKERS * _BYTES)).cast("q")
        for number in range(MAX_WORKERS):
            self._counts[number] = NOT_ACCEPTING

    def place(self, number: int, workers: int) -> WorkerSlot:
        """Of the worker with this number, from 1. One that follows another has its place, and begins anew."""
        return WorkerSlot(self._counts[:workers], number - 1)
