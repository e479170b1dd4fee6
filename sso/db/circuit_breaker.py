"""Whether the database answers at all. While it does not, nobody but one at a time waits to find out."""

import trio

PAUSE_S = 0.25  # between two attempts while it is away


class CircuitBreaker:
    """A slow statement is no sign of it: the database is away when nothing was answered for as long as a call that
    failed had lasted."""

    def __init__(self) -> None:
        self._last_answer = -1.0
        self._next_try: float | None = None  # None: it answers

    def may_try(self, within: float) -> bool:
        """False while it is away and another attempt is under way, which takes no longer than ``within``."""
        now = trio.current_time()
        if self._next_try is None:
            return True
        if now < self._next_try:
            return False
        self._next_try = now + within + PAUSE_S
        return True

    def answered(self) -> None:
        self._last_answer = trio.current_time()
        self._next_try = None

    def failed(self, began: float) -> None:
        """A call that began then could not connect, or got no answer in time."""
        if self._last_answer < began:
            self._next_try = trio.current_time() + PAUSE_S
