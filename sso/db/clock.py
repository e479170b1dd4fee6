"""The clock of the database, without a round trip.

Several hosts judge what one of them has issued, such as the ``iat`` of a token, and their clocks may differ. So all of
them use the database's clock: `sso/db/clock_sync.py` measures its difference to a steady clock of the host at the start
and every minute. Changes of the host's clock have no effect, because the steady clock does not follow them.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime

MAX_DRIFT = 100e-6  # seconds per second by which the two clocks may go apart


def steady_time() -> float:
    """Returns seconds that also pass while the host is suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class DatabaseClock:
    """Follows the host's clock until the first measurement."""

    def __init__(self, steady: Callable[[], float] = steady_time) -> None:
        self.steady = steady
        self._offset = time.time() - steady()  # from the steady clock to the database's
        self._error_s = float("inf")  # how exact the offset was when it was measured
        self._measured_at = 0.0

    def now(self) -> float:
        """Returns the time of the database in Unix seconds."""
        return self.steady() + self._offset

    def utc(self) -> datetime:
        return datetime.fromtimestamp(self.now(), UTC)

    def host_offset(self) -> float:
        """Returns by how many seconds the host's clock is ahead of the database's."""
        return time.time() - self.now()

    def record(self, sent: float, database_time: float, received: float) -> None:
        """Uses a sample if it is more exact than the present offset, or if the database's clock has been changed.

        A sample is exact to half of its round trip. The present offset loses exactness with time.
        """
        error_s = (received - sent) / 2
        offset = database_time - (sent + received) / 2
        present_error_s = self._error_s + (received - self._measured_at) * MAX_DRIFT
        if error_s <= present_error_s or abs(offset - self._offset) > error_s + present_error_s:
            self._offset, self._error_s, self._measured_at = offset, error_s, received
