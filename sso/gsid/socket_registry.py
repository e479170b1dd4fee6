"""The sockets of this worker: the events queued for each client, and one heartbeat for all of them (§6)."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import orjson
import structlog
import trio
from msgspec import Struct

from sso.core.ids import record_id
from sso.core.rate_window import RateWindow
from sso.db.errors import DatabaseError
from sso.db.failing_rows import isolate_failing_rows
from sso.gsid.model import DELIVERED, SESSION_EXPIRED
from sso.gsid.socket_store import SocketHeartbeat, SocketSession, SocketStore
from sso.log import request_fields
from sso.web.client_connection import FastWebSocket

# Close codes.
DONE, NOT_FOUND, UNBOUND, FLOOD, TOO_LARGE, FAILED, RESTARTING = 1000, 4404, 4403, 1008, 1009, 1011, 1012
MAX_BATCH = 1000  # sockets in one statement, which locks their sessions
MAX_SENT_PER_TURN = 100  # of the event loop: sending to all sockets of a batch takes many milliseconds
MAX_MESSAGES, MESSAGES_WINDOW_S = 20, 5.0  # a client need not send any
MAX_QUEUED_EVENTS = 16  # for a client that does not read; further events except a close are dropped
log = structlog.get_logger()


class SocketClose(Struct, frozen=True):
    code: int
    error: str = ""
    ban: Mapping[str, Any] | None = None  # that has ended the session; see `Ban.from_json`


RESTART = SocketClose(RESTARTING, "server restarting")
Event = dict[str, Any] | SocketClose


def new_socket_id(worker: str) -> str:
    """Returns an id that names the worker, so that a change of the session is published to this worker only."""
    return f"{record_id()}@{worker}"


class SocketClient:
    """One connected client. Events are written at once if its connection can do that, and otherwise queued."""

    __slots__ = (
        "_is_woken", "_messages", "_queue", "_reading", "_websocket", "closing", "gsid", "origin", "session_changed",
        "socket_id", "stage",
    )  # fmt: skip

    def __init__(self, gsid: str, socket_id: str, websocket: FastWebSocket | None = None) -> None:
        self.gsid = gsid
        self.socket_id = socket_id
        self.stage = ""
        self.closing = False
        self.origin = request_fields()  # log fields of the request that opened the socket
        self.session_changed = False  # its session may have, since the task of the client has set this to False
        self._websocket = websocket
        self._queue: list[Event] = []
        self._reading: trio.CancelScope | None = None
        self._is_woken = False
        self._messages: RateWindow | None = None  # most clients never send one

    def send(self, event: Event) -> None:
        """Does nothing if the socket is closing or the queue is full."""
        if self.closing:
            return
        if isinstance(event, dict):
            if self._websocket and not self._queue and self._websocket.try_send_text(orjson.dumps(event)):
                return
            if len(self._queue) >= MAX_QUEUED_EVENTS:
                return
        self.closing = isinstance(event, SocketClose)
        self._queue.append(event)
        self._wake()

    def signal(self) -> None:
        """The session may have changed."""
        self.session_changed = True
        self._wake()

    def _wake(self) -> None:
        self._is_woken = True
        if self._reading is not None:
            self._reading.cancel()

    async def read_until_woken(self, read: Callable[[], Awaitable[object]]) -> None:
        """Awaits ``read`` until an event is queued or the session may have changed. For the task of the client."""
        if not self._is_woken:
            with trio.CancelScope() as self._reading:
                await read()
            self._reading = None
        self._is_woken = False

    def has_sent_too_many(self) -> bool:
        """Counts a message of the client."""
        if self._messages is None:
            self._messages = RateWindow(MAX_MESSAGES, MESSAGES_WINDOW_S)
        return self._messages.exceeded(trio.current_time())

    def take_queued(self) -> list[Event]:
        events, self._queue = self._queue, []
        return events

    def send_heartbeat(self, ts: int) -> None:
        self.send({"event": "refresh", "gsid": self.gsid, "ts": ts, "last_seen": ts})

    def send_changes(self, session: SocketSession | None) -> None:
        """Sends a new stage, and closes the socket if the session has ended or another socket has replaced it."""
        if session is None or session.snapshot.error == SESSION_EXPIRED:
            self.send(SocketClose(NOT_FOUND, SESSION_EXPIRED))
            return
        if session.stage != self.stage:
            self.stage = session.stage
            self.send({"event": "stage", "stage": session.stage})
        if session.snapshot.status == DELIVERED:
            self.send(SocketClose(DONE))
        elif session.snapshot.ban:
            self.send(SocketClose(DONE, "banned", session.snapshot.ban))
        elif session.snapshot.error:
            self.send(SocketClose(DONE, session.snapshot.error))
        elif session.socket_id != self.socket_id:
            self.send(SocketClose(DONE, "replaced by a newer connection"))


class SocketRegistry:
    def __init__(self, store: SocketStore, interval_s: int) -> None:
        self._store = store
        self._interval_s = interval_s
        self._clients: set[SocketClient] = set()
        self.draining = False

    def __len__(self) -> int:
        return len(self._clients)

    def add(self, client: SocketClient) -> None:
        """Includes the client in the heartbeat."""
        self._clients.add(client)
        if self.draining:
            client.send(RESTART)

    def remove(self, client: SocketClient) -> None:
        self._clients.discard(client)

    def drain(self) -> None:
        """Closes all sockets."""
        self.draining = True
        for client in self._clients:
            client.send(RESTART)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Sends heartbeats for ever."""
        task_status.started()
        due = trio.current_time()
        while True:
            due = max(due + self._interval_s, trio.current_time())
            await trio.sleep_until(due)
            await self._heartbeat()

    async def _heartbeat(self) -> None:
        clients = [client for client in self._clients if not client.closing]
        for start in range(0, len(clients), MAX_BATCH):
            try:
                await isolate_failing_rows(
                    self._heartbeat_batch, clients[start : start + MAX_BATCH], _close_after_failure
                )
            except DatabaseError as error:  # the sockets stay open until the next heartbeat
                log.warning("gsid.heartbeat_failed", reason=str(error))

    async def _heartbeat_batch(self, clients: list[SocketClient]) -> None:
        heartbeat = await self._store.heartbeat(clients)
        for start in range(0, len(clients), MAX_SENT_PER_TURN):
            for client in clients[start : start + MAX_SENT_PER_TURN]:
                _send_heartbeat(client, heartbeat)
            await trio.lowlevel.checkpoint()


def _send_heartbeat(client: SocketClient, heartbeat: SocketHeartbeat) -> None:
    if client.socket_id not in heartbeat.changed:
        client.send_heartbeat(heartbeat.ts)
        return
    session = heartbeat.changed[client.socket_id]
    if session is not None and session.is_open and session.socket_id == client.socket_id:
        client.send_heartbeat(heartbeat.ts)
        client.signal()  # its task reads the stage: that of this row may be older than the change
    else:
        client.send_changes(session)


def _close_after_failure(client: SocketClient, error: Exception) -> None:
    """Closes a socket whose session cannot be read; the other sockets keep their heartbeat."""
    log.error("gsid.session_heartbeat_failed", gsid=client.gsid, reason=type(error).__name__, **client.origin)
    client.send(SocketClose(FAILED, "internal error"))
