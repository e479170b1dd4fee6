"""How hard the server is pressed, as a ``delay`` for polls: 0 when it is at ease, growing when it is not."""

import math
import random

import trio

LOOK_S = 0.5
AT_EASE_S = 0.25  # below this, nobody would notice
PER_SECOND = 4  # seconds of delay for each second of lateness
MAX_DELAY_S = 30
SMOOTH = 0.3


class Backpressure:
    def __init__(self, least_s: int) -> None:
        self._least_s = least_s
        self._late_s = 0.0  # tasks run so much later than they wanted to
        self._slow_s = 0.0  # the database takes so long for a poll
        self._spread_s = 0

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        while True:
            due = trio.current_time() + LOOK_S
            await trio.sleep_until(due)
            self._late_s += SMOOTH * (trio.current_time() - due - self._late_s)
            self._slow_s *= 1 - SMOOTH  # forgotten unless it goes on

    def took(self, seconds: float) -> None:
        self._slow_s += SMOOTH * (seconds - self._slow_s)

    def drain(self, held: int) -> None:
        """All who are held come back at once, to others: spread them over a second for every thousand."""
        self._spread_s = max(1, math.ceil(held / 1000))

    def delay(self) -> int:
        if self._spread_s:
            return self._least_s + random.randint(0, self._spread_s)  # noqa: S311 - spreads, hides nothing
        pressed = max(self._late_s, self._slow_s)
        return self._least_s + (min(MAX_DELAY_S, math.ceil(pressed * PER_SECOND)) if pressed > AT_EASE_S else 0)
