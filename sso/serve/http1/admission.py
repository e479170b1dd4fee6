"""Refuses requests while more arrive than this process can serve.

Otherwise they would wait for each other: after some seconds of overload, every client gets its answer when it no longer
waits for it. A process is overloaded if it works at many requests and those that it finishes have taken too long. From
then on it works at fewer at a time, as many as it can finish in time. It serves all again when it has refused none for
a while. Requests that wait for an event, such as held polls, or for their client do not count: otherwise a few hundred
clients that send or read slowly would make it refuse all others. A short burst is served as a whole.
"""

import math

import trio

MIN_ACTIVE = 200  # with fewer requests, a slow one waits for something else
SLOW_S = 0.5  # on average
MAX_COUNTED_S = 2 * SLOW_S  # a single request that waits for something else for a minute shows no overload
WEIGHT = 0.05  # of a request in the average
EVIDENCE_S = 0.25  # after the last request; then new ones are served again, and show whether the overload is over
CALM_S = 1.0  # without a refusal: the overload is over
# What a finished request does to the number of those at a time: it falls within a tenth of a second, and rises slowly.
DECREASE = 0.98
INCREASE = 0.1

# An orchestrator would restart a process whose health check is refused, which makes an overload worse.
HEALTH_CHECKS = (b"GET /healthz ", b"GET /readyz ", b"HEAD /healthz ", b"HEAD /readyz ")


class Admission:
    def __init__(self) -> None:
        self._active = 0
        self._max_active = math.inf
        self._average_s = 0.0
        self._finished = 0.0  # when the last request was finished
        self._refused = 0.0

    @property
    def is_overloaded(self) -> bool:
        return self._active >= self._max_active and trio.current_time() < self._finished + EVIDENCE_S

    def refuses(self, head: bytes) -> bool:
        """Returns whether the request with this head must be refused."""
        if not self.is_overloaded or head.startswith(HEALTH_CHECKS):
            return False
        self._refused = trio.current_time()
        return True

    def start(self) -> float:
        """Counts a request. Returns the time, for ``finish``."""
        self._active += 1
        return trio.current_time()

    def finish(self, began: float) -> float:
        """Returns 0. Does nothing with a ``began`` of 0."""
        if began:
            self._finished = trio.current_time()
            taken_s = min(self._finished - began, MAX_COUNTED_S)
            self._average_s += WEIGHT * (taken_s - self._average_s)
            self._adjust()
            self._active -= 1
        return 0.0

    def _adjust(self) -> None:
        """Changes the number of requests at a time."""
        if self._average_s > SLOW_S and self._active >= MIN_ACTIVE:
            self._max_active = max(MIN_ACTIVE, DECREASE * min(self._max_active, self._active))
            self._refused = self._finished  # none may have been refused yet
        elif self._finished > self._refused + CALM_S:
            self._max_active = math.inf
        else:
            self._max_active += INCREASE

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
