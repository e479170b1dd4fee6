"""One clock for all connections: a deadline is a number that is looked at now and then, and costs nothing to set."""

from collections.abc import Collection
from email.utils import formatdate
from typing import Protocol

import trio

from sso.serve.server_limits import ServerLimits

TICK_S = 1.0


class HasDeadline(Protocol):
    due: float

    def expire(self) -> None: ...


class DeadlineClock:
    def __init__(self, limits: ServerLimits, timed: Collection[HasDeadline]) -> None:
        shortest = min(limits.keep_alive_s, limits.head_s, limits.body_s, limits.write_s, limits.linger_s)
        self._tick_s = min(TICK_S, shortest / 4)
        self._timed = timed
        self.now = 0.0  # late by a tick at most
        self.date = b""  # the header

    def tick(self) -> None:
        self.now = trio.current_time()
        self.date = f"date: {formatdate(usegmt=True)}\r\n".encode()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        self.tick()
        task_status.started()
        while True:
            await trio.sleep(self._tick_s)
            self.tick()
            now = self.now
            for timed in [timed for timed in self._timed if timed.due < now]:
                timed.expire()
