"""One clock for all connections: a deadline is a number that a periodic task compares, so setting one costs nothing."""

from collections.abc import Collection
from email.utils import formatdate
from typing import Protocol

import trio

from sso.serve.server_limits import ServerLimits

TICK_S = 1.0


class HasDeadline(Protocol):
    deadline: float

    def expire(self) -> None: ...


class DeadlineClock:
    def __init__(self, limits: ServerLimits, watched: Collection[HasDeadline]) -> None:
        shortest = min(limits.keep_alive_s, limits.head_s, limits.body_s, limits.write_s, limits.ping_s, limits.pong_s)
        self._tick_s = min(TICK_S, shortest / 4)
        self._watched = watched
        self.now = 0.0  # at most one tick behind the real time
        self.date_header = b""

    def tick(self) -> None:
        self.now = trio.current_time()
        self.date_header = f"date: {formatdate(usegmt=True)}\r\n".encode()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        self.tick()
        task_status.started()
        while True:
            await trio.sleep(self._tick_s)
            self.tick()
            now = self.now
            for expired in [watched for watched in self._watched if watched.deadline < now]:
                expired.expire()
