"""Circuit breaker: while the database does not answer, calls fail at once and one probe runs at a time."""

import trio

PAUSE_S = 0.25  # between two probes


class CircuitBreaker:
    """Opens when a call fails and no call was answered since it began, so that one slow statement does not open it.

    ``record_success`` closes it.
    """

    def __init__(self) -> None:
        self._last_answer = -1.0
        self._next_probe: float | None = None  # None while the breaker is closed

    @property
    def is_open(self) -> bool:
        return self._next_probe is not None

    def allows_call(self, probe_s: float) -> bool:
        """Returns False while the breaker is open, except for one call at a time: the probe.

        The next probe is allowed after this one has had ``probe_s`` to succeed.
        """
        now = trio.current_time()
        if self._next_probe is None:
            return True
        if now < self._next_probe:
            return False
        self._next_probe = now + probe_s + PAUSE_S
        return True

    def record_success(self) -> None:
        """The database has answered."""
        self._last_answer = trio.current_time()
        self._next_probe = None

    def record_failure(self, began: float) -> bool:
        """A call that began at ``began`` could not connect or got no answer in time. Returns whether it is open now."""
        if self._last_answer < began:
            self._next_probe = trio.current_time() + PAUSE_S
        return self._next_probe is not None
