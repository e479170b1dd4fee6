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
EVIDENCE_S = 0.25  # after the last finished request; then one is served, and shows whether the overload is over
CALM_S = 1.0  # without a refusal: the overload is over
# What a finished request does to the number of those at a time: 70 slow ones lower it to a quarter.
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
        self._tried = 0.0  # when a request was last served to learn whether the overload is over
        self._overloaded = 0.0  # when a request was last refused, or the number lowered

    @property
    def is_overloaded(self) -> bool:
        return self._active >= self._max_active

    def refuses(self, head: bytes) -> bool:
        """Returns whether the request with this head must be refused."""
        if not self.is_overloaded:
            self._lift_after_calm()
            return False
        if head.startswith(HEALTH_CHECKS):
            return False
        now = trio.current_time()
        if now >= max(self._finished, self._tried) + EVIDENCE_S:
            self._tried = now
            return False
        self._overloaded = now
        return True

    def _lift_after_calm(self) -> None:
        """Ends an overload after which no requests came: none of them has shown that it is over."""
        if self._max_active < math.inf and trio.current_time() > max(self._finished, self._overloaded) + CALM_S:
            self._max_active = math.inf

    def start(self) -> float:
        """Counts a request. Returns the time, for ``finish``."""
        self._active += 1
        return trio.current_time()

    def finish(self, began: float) -> float:
        """Returns 0. Does nothing with a ``began`` of 0."""
        if began:
            now = trio.current_time()
            if now > self._finished + CALM_S:
                self._average_s = 0.0  # what was long ago says nothing about now
            self._finished = now
            self._average_s += WEIGHT * (min(now - began, MAX_COUNTED_S) - self._average_s)
            self._adjust()
            self._active -= 1
        return 0.0

    def _adjust(self) -> None:
        """Changes the number of requests at a time, after one of them was finished."""
        if self._average_s > SLOW_S and self._active >= MIN_ACTIVE:
            self._max_active = max(MIN_ACTIVE, DECREASE * min(self._max_active, self._active))
            self._overloaded = self._finished
        elif self._finished > self._overloaded + CALM_S:
            self._max_active = math.inf
        else:
            # Requests are finished in time beside as many as there are now, some of which may wait for something else.
            self._max_active = max(self._max_active, self._active - 1) + INCREASE

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
