"""The sockets of this worker: what each is to be told, and the heartbeat of them all (§6)."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Self

import structlog
import trio

from sso.core.ids import record_id
from sso.db.bad_rows import isolate
from sso.db.errors import DatabaseError
from sso.gsid.model import DELIVERED, EXPIRED
from sso.gsid.socket_store import SocketSession, SocketStore

DONE, NOT_FOUND, UNBOUND, FLOOD, TOO_LARGE, FAILED, RESTARTING = 1000, 4404, 4403, 1008, 1009, 1011, 1012
AT_ONCE = 1000  # sockets in a statement: their sessions are locked meanwhile
MAX_WAITING = 16  # events that a client has not read yet; a beat more or less does not matter then
log = structlog.get_logger()


@dataclass(frozen=True)
class SocketClose:
    code: int
    error: str = ""


RESTART = SocketClose(RESTARTING, "server restarting")
Event = dict[str, Any] | SocketClose


@dataclass(eq=False)
class SocketClient:
    """One socket: events go in at one end, and out to the client at the other."""

    gsid: str
    socket: str = field(default_factory=record_id)
    stage: str = ""
    over: bool = False

    def __post_init__(self) -> None:
        self._send, self.events = trio.open_memory_channel[Event](math.inf)

    def tell(self, event: Event) -> None:
        if self.over or (isinstance(event, dict) and self._send.statistics().current_buffer_used >= MAX_WAITING):
            return
        self.over = isinstance(event, SocketClose)
        self._send.send_nowait(event)

    def beat(self, seen: SocketSession) -> None:
        standing = seen.standing
        self.tell({"event": "refresh", "gsid": self.gsid, "ts": standing.ts, "last_seen": standing.last_seen})

    def see(self, seen: SocketSession | None) -> None:
        """Tell what is new: a stage, or that it is over."""
        if seen is None or seen.standing.error == EXPIRED:
            self.tell(SocketClose(NOT_FOUND, EXPIRED))
            return
        if seen.stage != self.stage:
            self.stage = seen.stage
            self.tell({"event": "stage", "stage": seen.stage})
        if seen.standing.status == DELIVERED:
            self.tell(SocketClose(DONE))
        elif seen.standing.error:
            self.tell(SocketClose(DONE, seen.standing.error))
        elif seen.socket != self.socket:
            self.tell(SocketClose(DONE, "replaced by a newer connection"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.over = True  # whoever is about to tell it something finds nobody there
        self._send.close()
        self.events.close()


class SocketRegistry:
    def __init__(self, store: SocketStore, every_s: int) -> None:
        self._store = store
        self._every_s = every_s
        self._lines: set[SocketClient] = set()
        self.draining = False

    def __len__(self) -> int:
        return len(self._lines)

    @contextmanager
    def beating(self, line: SocketClient) -> Iterator[None]:
        """From the first beat on."""
        self._lines.add(line)
        if self.draining:
            line.tell(RESTART)
        try:
            yield
        finally:
            self._lines.discard(line)

    def drain(self) -> None:
        self.draining = True
        for line in self._lines:
            line.tell(RESTART)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        due = trio.current_time()
        while True:
            due = max(due + self._every_s, trio.current_time())
            await trio.sleep_until(due)
            await self._beat()

    async def _beat(self) -> None:
        lines = [line for line in self._lines if not line.over]
        for start in range(0, len(lines), AT_ONCE):
            try:
                await isolate(self._beat_some, lines[start : start + AT_ONCE], _beat_failed)
            except DatabaseError as error:  # the sockets stay; the next beat comes
                log.warning("gsid.beat_not_done", reason=str(error))

    async def _beat_some(self, lines: list[SocketClient]) -> None:
        seen = await self._store.beat((line.gsid, line.socket) for line in lines)
        for line in lines:
            found = seen.get(line.socket)
            if found is not None and found.is_open and found.socket == line.socket:
                line.beat(found)
            line.see(found)


def _beat_failed(line: SocketClient, error: Exception) -> None:
    """Close a socket whose session cannot be read; the others keep their heartbeat."""
    log.error("gsid.beat_failed", gsid=line.gsid, reason=type(error).__name__)
    line.tell(SocketClose(FAILED, "internal error"))
