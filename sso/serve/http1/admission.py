"""Refuses requests while more arrive than this process can serve.

Otherwise they would wait for each other: after some seconds of overload, every client gets its answer when it no longer
waits for it. A process is overloaded while it works at many requests and those that it finishes have taken too long.
Requests that wait for an event, such as held polls, or for their client do not count: otherwise a few hundred clients
that send or read slowly would make it refuse all others. A short burst is served as a whole.
"""

import trio

MIN_ACTIVE = 200  # with fewer requests, a slow one waits for something else
SLOW_S = 0.5  # on average
WEIGHT = 0.05  # of a request in the average
EVIDENCE_S = 0.25  # after the last request; then new ones are served again, and show whether the overload is over
# After a refusal, the next request of a connection is read so much later. Clients that obey Retry-After do not notice.
# Others would take the time that the service needs for answers: a refusal costs a third of a quick one.
REFUSAL_PAUSE_S = 0.75

# An orchestrator would restart a process whose health check is refused, which makes an overload worse.
HEALTH_CHECKS = (b"GET /healthz ", b"GET /readyz ", b"HEAD /healthz ", b"HEAD /readyz ")


class Admission:
    def __init__(self) -> None:
        self._active = 0
        self._average_s = 0.0
        self._finished = 0.0  # when the last request was finished

    @property
    def is_overloaded(self) -> bool:
        return (
            self._active >= MIN_ACTIVE
            and self._average_s > SLOW_S
            and trio.current_time() < self._finished + EVIDENCE_S
        )

    def refuses(self, head: bytes) -> bool:
        """Returns whether the request with this head must be refused."""
        return self.is_overloaded and not head.startswith(HEALTH_CHECKS)

    def start(self) -> float:
        """Counts a request. Returns the time, for ``finish``."""
        self._active += 1
        return trio.current_time()

    def finish(self, began: float) -> float:
        """Returns 0. Does nothing with a ``began`` of 0."""
        if began:
            self._active -= 1
            self._finished = trio.current_time()
            self._average_s += WEIGHT * (self._finished - began - self._average_s)
        return 0.0

    def hold(self, began: float) -> float:
        """The request waits for an event, and counts no longer. Returns 0. Does nothing with a ``began`` of 0."""
        if began:
            self._active -= 1
        return 0.0

    def resume(self, began: float, held_at: float) -> float:
        """Counts a held request again. Returns a ``began`` without its wait, or 0 for a ``began`` of 0."""
        if not began:
            return 0.0
        self._active += 1
        return began + trio.current_time() - held_at
