"""Connection counts of all workers in shared memory, so that a worker with more connections lets the others accept.

All workers listen on the same socket. Without this, the worker that wakes first accepts everything that waits there:
one core would serve all thirty connections of a proxy while another is idle.
"""

import mmap
from collections.abc import Iterator
from typing import Protocol

MAX_WORKERS = 256
NOT_ACCEPTING = -1  # the count of a worker that accepts no connections
_COUNT_BYTES = 8
_LEAD_DIVISOR = 8  # a worker may lead by one eighth of its connections: perfect balance would cost too much waiting


class ConnectionCounts(Protocol):
    """One count per worker: a list, or memory that the processes share."""

    def __iter__(self) -> Iterator[int]: ...
    def __setitem__(self, index: int, count: int, /) -> None: ...


class WorkerSlot:
    """The entry of one worker. The counts that it reads of other workers may be slightly out of date."""

    def __init__(self, counts: ConnectionCounts | None = None, index: int = 0) -> None:
        self._counts = counts if counts is not None else [NOT_ACCEPTING]
        self._index = index
        self.is_first = index == 0  # among the workers of this node
        self.connections = 0
        self._counts[index] = NOT_ACCEPTING

    def start_accepting(self) -> None:
        """From now on the other workers take this one into account."""
        self._publish()

    def add_connection(self) -> None:
        self.connections += 1
        self._publish()

    def remove_connection(self) -> None:
        self.connections -= 1
        self._publish()

    def detach(self) -> None:
        """Stops publishing: the replacement of this worker may already use the same entry."""
        self._counts, self._index = [self.connections], 0

    @property
    def other_counts(self) -> list[int]:
        """The connections of each other worker that accepts connections."""
        return [count for index, count in enumerate(self._counts) if index != self._index and count != NOT_ACCEPTING]

    @property
    def max_lead(self) -> int:
        """How many more connections than the other workers this one may have."""
        return 1 + self.connections // _LEAD_DIVISOR

    def _publish(self) -> None:
        self._counts[self._index] = self.connections


class WorkerSlots:
    """The shared memory with the entries of all workers. It must be created before the workers are forked."""

    def __init__(self) -> None:
        self._counts = memoryview(mmap.mmap(-1, MAX_WORKERS * _COUNT_BYTES)).cast("q")
        for index in range(MAX_WORKERS):
            self._counts[index] = NOT_ACCEPTING

    def slot(self, number: int, workers: int) -> WorkerSlot:
        """Returns the entry of the worker with this number, counted from 1. A replacement resets its count."""
        return WorkerSlot(self._counts[:workers], number - 1)
