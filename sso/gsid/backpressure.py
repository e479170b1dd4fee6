"""Backpressure: the ``delay`` that polls are asked to wait, computed from the load of this worker.

The delay is the configured minimum while event loop and database are fast, and grows with their latency.
"""

import math
import random

import trio

SAMPLE_INTERVAL_S = 0.5
MIN_LATENCY_S = 0.25  # a latency below this adds no delay
DELAY_PER_LATENCY_SECOND = 4
MAX_DELAY_S = 30
SMOOTHING = 0.3  # weight of a new sample in the moving averages


class Backpressure:
    def __init__(self, min_delay_s: int) -> None:
        self._min_delay_s = min_delay_s
        self._loop_lag_s = 0.0
        self._poll_duration_s = 0.0
        self._spread_s = 0

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Samples the lag of the event loop for ever."""
        task_status.started()
        while True:
            due = trio.current_time() + SAMPLE_INTERVAL_S
            await trio.sleep_until(due)
            self._loop_lag_s += SMOOTHING * (trio.current_time() - due - self._loop_lag_s)
            self._poll_duration_s *= 1 - SMOOTHING  # decays while no further slow poll is recorded

    def record_poll_duration(self, seconds: float) -> None:
        """Records how long the database took to start a poll."""
        self._poll_duration_s += SMOOTHING * (seconds - self._poll_duration_s)

    def drain(self, held: int) -> None:
        """Spreads the return of ``held`` polls to other workers: one second per thousand polls."""
        self._spread_s = max(1, math.ceil(held / 1000))

    def delay(self) -> int:
        """Returns the seconds that a poll should wait before the next one."""
        if self._spread_s:
            return self._min_delay_s + random.randint(0, self._spread_s)  # noqa: S311 - spreads load, hides nothing
        latency_s = max(self._loop_lag_s, self._poll_duration_s)
        if latency_s <= MIN_LATENCY_S:
            return self._min_delay_s
        return self._min_delay_s + min(MAX_DELAY_S, math.ceil(latency_s * DELAY_PER_LATENCY_SECOND))
