"""Limits the number of events within a sliding window of time, in memory."""

from collections import deque


class RateWindow:
    def __init__(self, max_events: int, seconds: float) -> None:
        self._max_events = max_events
        self._seconds = seconds
        self._times: deque[float] = deque(maxlen=max_events)

    def exceeded(self, now: float) -> bool:
        """Counts an event. Returns whether more than ``max_events`` happened within the last ``seconds``."""
        is_exceeded = len(self._times) == self._max_events and now - self._times[0] < self._seconds
        self._times.append(now)
        return is_exceeded
