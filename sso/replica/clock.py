"""The time of the service, and how long ago the copy was known to be current."""

import time


class ReplicaClock:
    """Follows the clock of the service, so that roles end in the replica when they end there.

    Until the first response, it is the clock of this machine.
    """

    def __init__(self) -> None:
        self._difference = time.time() - time.monotonic()
        self._current_at: float | None = None  # by the steady clock

    def now(self) -> float:
        return time.monotonic() + self._difference

    def start_request(self) -> float:
        """Returns the moment of a request: its response is not older than that."""
        return time.monotonic()

    def answered(self, started: float, service_now: float) -> None:
        self._difference = service_now - time.monotonic()
        self._current_at = max(started, self._current_at or started)

    def restored(self, saved_at: float) -> None:
        """Takes the age of a copy on disk by the clock of this machine."""
        self._current_at = time.monotonic() - max(0.0, time.time() - saved_at)

    def staleness(self) -> float | None:
        """Returns the seconds since the copy was known to be current, None if there is no copy."""
        return None if self._current_at is None else max(0.0, time.monotonic() - self._current_at)
