"""The server of one worker: accepts connections, starts a task for each, and drains them at the end."""

import socket
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import trio

from sso.serve.http1.accept import OnConnection, accept_forever, accept_pending
from sso.serve.http1.balance import WorkerSlot
from sso.serve.http1.connection import Connection
from sso.serve.http1.lifespan import Lifespan
from sso.serve.http1.rejections import RejectionResponses, RequestRejected
from sso.serve.http1.server_context import ServerContext
from sso.serve.listeners import BACKLOG
from sso.serve.server_limits import ServerLimits


async def serve(
    app: Any,
    sockets: Sequence[socket.socket],
    stop: trio.Event,
    ready: Callable[[], None],
    limits: ServerLimits | None = None,
    headers: Iterable[tuple[str, str]] = (),
    slot: WorkerSlot | None = None,
) -> None:
    """Serves until ``stop`` is set; then accepts no more connections, finishes the requests in flight, and returns.

    ``headers`` are added to responses that do not come from the application.
    """
    limits = limits or ServerLimits()
    lifespan = Lifespan(app)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lifespan.run)
        await lifespan.announce("startup")
        context = ServerContext(app, limits, RejectionResponses(headers), slot)
        await Http1Server(context, stop).run(sockets, ready)
        await lifespan.announce("shutdown")
        nursery.cancel_scope.cancel()


class Http1Server:
    def __init__(self, context: ServerContext, stop: trio.Event) -> None:
        self._context = context
        self._stop = stop
        self._local_addresses: dict[tuple[str, int] | None, tuple[str, int] | None] = {}

    async def run(self, sockets: Sequence[socket.socket], ready: Callable[[], None]) -> None:
        context = self._context
        try:
            async with trio.open_nursery() as background:
                await background.start(context.clock.run)
                background.start_soon(context.disconnects.run)
                background.start_soon(context.frame_waits.run)
                background.start_soon(context.pacing.run)
                background.start_soon(context.refusal_pause.run)
                async with trio.open_nursery() as connections:
                    await self._accept(sockets, partial(self._start_connection, connections), ready)
                    background.start_soon(self._drain, connections)
                background.cancel_scope.cancel()
        finally:
            context.disconnects.close()
            context.frame_waits.close()

    async def _accept(
        self, sockets: Sequence[socket.socket], on_connection: OnConnection, ready: Callable[[], None]
    ) -> None:
        limiter = self._context.limiter
        async with trio.open_nursery() as accepting:
            limiter.slot.start_accepting()
            for listener in sockets:
                listener.setblocking(False)
                accepting.start_soon(accept_forever, listener, limiter, on_connection, self._context.admission)
            ready()
            await self._stop.wait()
            accepting.cancel_scope.cancel()
        limiter.slot.detach()
        for listener in sockets:
            with suppress(OSError):
                accept_pending(listener, on_connection, BACKLOG)  # clients that connected before the end are served
            listener.close()

    def _start_connection(self, nursery: trio.Nursery, sock: socket.socket, client: tuple[str, int] | None) -> None:
        context = self._context
        if not context.limiter.admit(client):
            with sock, suppress(OSError):
                rejection = RequestRejected(429, "too many connections", (("Retry-After", "1"),))
                sock.send(context.render_rejection(rejection))
                # Unread bytes would reset the connection, and the client might lose the response.
                sock.recv(context.limits.max_head_bytes)
        else:
            address = None if client is None else sock.getsockname()[:2]
            address = self._local_addresses.setdefault(address, address)  # one object for thousands of connections
            nursery.start_soon(Connection(context, sock, client, address).run, name="connection")

    async def _drain(self, connections: trio.Nursery) -> None:
        context = self._context
        context.draining = True
        connections.cancel_scope.deadline = trio.current_time() + context.limits.drain_s
        self._close_idle(include_new=False)
        # A client that has just connected is about to send a request; it would fail if the connection closed now.
        await trio.sleep(context.limits.first_request_s)
        self._close_idle(include_new=True)

    def _close_idle(self, *, include_new: bool) -> None:
        for connection in self._context.connections:
            connection.close_if_idle(include_new=include_new)
