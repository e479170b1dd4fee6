"""Serving through the lane: what all connections of a worker share, and its life."""

import select
import socket
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.trio.lifespan import Lifespan

from sso.serve.http1.accept import ConnectionLimiter, accept_forever, accept_pending
from sso.serve.http1.balance import WorkerSlot
from sso.serve.http1.connection import Connection, ConnectionState
from sso.serve.http1.deadlines import DeadlineClock
from sso.serve.http1.disconnects import DisconnectWatcher
from sso.serve.http1.pacing import RequestPacing
from sso.serve.http1.rejections import RejectionResponses, RequestRejected
from sso.serve.http1.upgrade import HypercornUpgrade
from sso.serve.hypercorn_app import hypercorn_config
from sso.serve.hypercorn_connection import HypercornRules
from sso.serve.listeners import BACKLOG
from sso.serve.rate_limited_log import RateLimitedLog
from sso.serve.server_limits import ServerLimits


async def serve(
    app: Any,
    sockets: Sequence[socket.socket],
    stop: trio.Event,
    ready: Callable[[], None],
    limits: ServerLimits | None = None,
    headers: Iterable[tuple[str, str]] = (),
    place: WorkerSlot | None = None,
    *,
    hypercorn_only: bool = False,
) -> None:
    """Answer requests until ``stop`` is set; then take no more, finish those in flight, and return.

    ``headers`` are those of answers that do not come from the application. With ``hypercorn_only`` hypercorn answers
    plain requests as well as WebSockets.
    """
    limits = limits or ServerLimits()
    lifespan = Lifespan(ASGIWrapper(app), hypercorn_config(limits), {})
    async with trio.open_nursery() as around:
        await around.start(lifespan.handle_lifespan)
        await lifespan.wait_for_startup()
        lane = Http1Server(app, stop, limits, RejectionResponses(headers), place)
        lane.hypercorn_only = hypercorn_only
        await lane.run(sockets, ready)
        await lifespan.wait_for_shutdown()
        around.cancel_scope.cancel()


class Http1Server:
    hypercorn_only = False

    def __init__(
        self,
        app: Any,
        stop: trio.Event,
        limits: ServerLimits,
        refusals: RejectionResponses,
        place: WorkerSlot | None = None,
    ) -> None:
        self.app = app
        self.connections: set[Connection] = set()
        self.limits = limits
        self.refusals = refusals
        self.clock = DeadlineClock(limits, self.connections)
        self.watcher = DisconnectWatcher()
        self.turns = RequestPacing()
        self.log = RateLimitedLog()
        self.other = HypercornUpgrade(app, stop, HypercornRules(limits, self.refusal, self.log))
        self.draining = False
        self._stop = stop
        self.door = ConnectionLimiter(limits, place)
        self._addresses: dict[tuple[str, int] | None, tuple[str, int] | None] = {}

    async def run(self, sockets: Sequence[socket.socket], ready: Callable[[], None]) -> None:
        try:
            async with trio.open_nursery() as background:
                await background.start(self.clock.run)
                background.start_soon(self.watcher.run)
                background.start_soon(self.turns.run)
                async with trio.open_nursery() as inside:
                    welcome = partial(self._welcome, inside)
                    await self._accept(sockets, welcome, ready)
                    background.start_soon(self._drain, inside)
                background.cancel_scope.cancel()
        finally:
            self.watcher.close()

    async def _accept(self, sockets: Sequence[socket.socket], welcome: Any, ready: Callable[[], None]) -> None:
        async with trio.open_nursery() as accepting:
            self.door.place.open()
            for listener in sockets:
                listener.setblocking(False)
                accepting.start_soon(accept_forever, listener, self.door, welcome)
            ready()
            await self._stop.wait()
            accepting.cancel_scope.cancel()
        self.door.place.give_up()
        for listener in sockets:
            with suppress(OSError):
                accept_pending(listener, welcome, BACKLOG)  # who came before the end is let in
            listener.close()

    def _welcome(self, inside: trio.Nursery, sock: socket.socket, client: tuple[str, int] | None) -> None:
        if not self.door.enter(client):
            with sock, suppress(OSError):
                sock.send(self.refusal(RequestRejected(429, "too many connections")))
        elif self.hypercorn_only:
            inside.start_soon(self._serve_by_hypercorn, sock, client, name="connection")
        else:
            server = None if client is None else sock.getsockname()[:2]
            server = self._addresses.setdefault(server, server)  # one for all the thousands
            inside.start_soon(Connection(self, sock, client, server).run, name="connection")

    async def _serve_by_hypercorn(self, sock: socket.socket, client: tuple[str, int] | None) -> None:
        try:
            await self.other.take(sock)
        finally:
            self.door.leave(client)
            sock.close()

    def refusal(self, refused: RequestRejected) -> bytes:
        return self.refusals.answer(refused, self.clock.date)

    async def _drain(self, inside: trio.Nursery) -> None:
        self.draining = True
        inside.cancel_scope.deadline = trio.current_time() + self.limits.drain_s
        await self.other.drain()
        self._close_idle(fresh=False)
        # Who has just come is about to ask; nobody likes a connection that is closed without a word.
        await trio.sleep(self.limits.first_request_s)
        self._close_idle(fresh=True)

    def _close_idle(self, fresh: bool) -> None:
        for connection in self.connections:
            idle = connection.doing is ConnectionState.IDLE and (fresh or not connection.fresh)
            if idle and not _has_asked(connection.sock):
                connection.scope.cancel()


def _has_asked(sock: socket.socket) -> bool:
    """Something has come that was not read yet."""
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(0))
