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

from sso.serve.hypercorn_app import configuration
from sso.serve.hypercorn_connection import Rules
from sso.serve.lane.accept import Door, accept, take
from sso.serve.lane.clock import Clock
from sso.serve.lane.connection import Connection, Doing
from sso.serve.lane.handover import Other
from sso.serve.lane.places import Place
from sso.serve.lane.refused import Refusals, Refused
from sso.serve.lane.turns import Turns
from sso.serve.lane.watch import Watcher
from sso.serve.limits import Limits
from sso.serve.rate_limited_log import RateLimitedLog
from sso.serve.sockets import BACKLOG


async def serve(
    app: Any,
    sockets: Sequence[socket.socket],
    stop: trio.Event,
    ready: Callable[[], None],
    limits: Limits | None = None,
    headers: Iterable[tuple[str, str]] = (),
    place: Place | None = None,
    *,
    hypercorn_only: bool = False,
) -> None:
    """Answer requests until ``stop`` is set; then take no more, finish those in flight, and return.

    ``headers`` are those of answers that do not come from the application. With ``hypercorn_only`` hypercorn answers
    plain requests as well as WebSockets.
    """
    limits = limits or Limits()
    lifespan = Lifespan(ASGIWrapper(app), configuration(limits), {})
    async with trio.open_nursery() as around:
        await around.start(lifespan.handle_lifespan)
        await lifespan.wait_for_startup()
        lane = Lane(app, stop, limits, Refusals(headers), place)
        lane.hypercorn_only = hypercorn_only
        await lane.run(sockets, ready)
        await lifespan.wait_for_shutdown()
        around.cancel_scope.cancel()


class Lane:
    hypercorn_only = False

    def __init__(
        self, app: Any, stop: trio.Event, limits: Limits, refusals: Refusals, place: Place | None = None
    ) -> None:
        self.app = app
        self.connections: set[Connection] = set()
        self.limits = limits
        self.refusals = refusals
        self.clock = Clock(limits, self.connections)
        self.watcher = Watcher()
        self.turns = Turns()
        self.log = RateLimitedLog()
        self.other = Other(app, stop, Rules(limits, self.refusal, self.log))
        self.draining = False
        self._stop = stop
        self.door = Door(limits, place)
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
                accepting.start_soon(accept, listener, self.door, welcome)
            ready()
            await self._stop.wait()
            accepting.cancel_scope.cancel()
        self.door.place.give_up()
        for listener in sockets:
            with suppress(OSError):
                take(listener, welcome, BACKLOG)  # who came before the end is let in
            listener.close()

    def _welcome(self, inside: trio.Nursery, sock: socket.socket, client: tuple[str, int] | None) -> None:
        if not self.door.enter(client):
            with sock, suppress(OSError):
                sock.send(self.refusal(Refused(429, "too many connections")))
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

    def refusal(self, refused: Refused) -> bytes:
        return self.refusals.answer(refused, self.clock.date)

    async def _drain(self, inside: trio.Nursery) -> None:
        self.draining = True
        inside.cancel_scope.deadline = trio.current_time() + self.limits.drain_s
        await self.other.drain()
        self._close_idle(fresh=False)
        # Who has just come is about to ask; nobody likes a connection that is closed without a word.
        await trio.sleep(self.limits.fresh_s)
        self._close_idle(fresh=True)

    def _close_idle(self, fresh: bool) -> None:
        for connection in self.connections:
            idle = connection.doing is Doing.IDLE and (fresh or not connection.fresh)
            if idle and not _has_asked(connection.sock):
                connection.scope.cancel()


def _has_asked(sock: socket.socket) -> bool:
    """Something has come that was not read yet."""
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(0))
