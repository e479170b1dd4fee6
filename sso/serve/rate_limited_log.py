"""Limits log lines that clients can cause at will or that a lasting fault repeats: one per event and interval."""

import time
from collections.abc import Callable
from typing import Any

INTERVAL_S = 10.0


class RateLimitedLog:
    """Writes the first line of an event; later ones are only counted until the interval is over."""

    def __init__(self, interval_s: float = INTERVAL_S) -> None:
        self._interval_s = interval_s
        self._next: dict[str, float] = {}
        self._suppressed: dict[str, int] = {}

    def __call__(self, write: Callable[..., Any], event: str, **fields: object) -> None:
        """``write`` is a method of a logger, such as ``log.debug``. Events must be constants, as each is stored."""
        now = time.monotonic()
        if now < self._next.get(event, 0.0):
            self._suppressed[event] = self._suppressed.get(event, 0) + 1
            return
        self._next[event] = now + self._interval_s
        if suppressed := self._suppressed.pop(event, 0):
            fields["suppressed"] = suppressed
        write(event, **fields)
