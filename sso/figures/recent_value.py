"""A value that takes long to read, and may be some seconds old."""

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import trio

T = TypeVar("T")


class RecentValue(Generic[T]):
    def __init__(self, read: Callable[[], Awaitable[T]], max_age_s: float) -> None:
        self._read = read
        self._max_age_s = max_age_s
        self._lock = trio.Lock()  # concurrent callers wait for one statement
        self._value: T | None = None
        self._read_at = 0.0

    async def get(self) -> T:
        async with self._lock:
            if self._value is None or trio.current_time() - self._read_at >= self._max_age_s:
                started = trio.current_time()
                self._value = await self._read()
                self._read_at = started
            return self._value
