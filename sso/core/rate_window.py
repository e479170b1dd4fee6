"""How many events happen within a moving stretch of time."""

from collections import deque


class RateWindow:
    def __init__(self, most: int, seconds: float) -> None:
        self._seconds = seconds
        self._times: deque[float] = deque(maxlen=most)
        self._most = most

    def exceeded(self, now: float) -> bool:
        """Counts an event. True if it is one more than allowed within the last seconds."""
        full = len(self._times) == self._most and now - self._times[0] < self._seconds
        self._times.append(now)
        return full
