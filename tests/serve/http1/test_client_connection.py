"""What a handler learns of its client: a disconnect, and a response that was not delivered."""

import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.lowlevel
from quart_trio import QuartTrio
from trio.testing import wait_all_tasks_blocked

from sso.log import current_request_id
from sso.serve import acknowledgement
from sso.web.client_connection import client_connection
from sso.web.fast_quart.app import FastQuart
from tests.kit.raw_http import RawConnection, RunningServer, serving

WAIT_S = 60
REQUEST_ID = "0123456789abcdef"
LONG = 20_000_000  # more than the buffers of the kernel take
BUFFERED = 600_000  # less than the sender's buffer takes, more than the receiver's
DISCONNECTS = ["close", "reset", "shutdown of the sending side"]


class App:
    """Handlers that wait, and a record of what happens to them."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.last_request_id: str | None = None
        self.waiting = trio.Event()
        self.proceed = trio.Event()
        self.ended = trio.Event()
        self.quart: QuartTrio = FastQuart("test")
        self.quart.get("/hold")(self.hold)
        self.quart.get("/claim")(self.claim)
        self.quart.get("/long")(self.long)
        self.quart.get("/buffered")(self.buffered)

    async def hold(self) -> str:
        try:
            with client_connection().cancel_on_disconnect(), client_connection().cancel_on_disconnect():
                self.waiting.set()
                await self.proceed.wait()
            self.events.append("served")
        except trio.Cancelled:
            self.events.append("cancelled")
            raise
        finally:
            self.ended.set()
        return "held"

    async def claim(self) -> str:
        current_request_id.set(REQUEST_ID)
        client_connection().on_response_end = self.end
        self.waiting.set()
        with trio.CancelScope(shield=True):
            await self.proceed.wait()
        self.events.append("claimed")
        return "claimed"

    async def long(self) -> str:
        client_connection().on_response_end = self.end
        return "a" * LONG

    async def buffered(self) -> str:
        client_connection().on_response_end = self.end
        return "a" * BUFFERED

    async def end(self, delivered: bool) -> None:
        await trio.lowlevel.checkpoint()  # it may wait, although the request was cancelled
        self.events.append("delivered" if delivered else "taken back")
        self.last_request_id = current_request_id.get()
        self.ended.set()


@asynccontextmanager
async def serving_app() -> AsyncIterator[tuple[App, RunningServer]]:
    app = App()

    async def handler(scope: Any, receive: Any, send: Any) -> None:
        await app.quart(scope, receive, send)

    async with serving(handler) as server:
        yield app, server


async def get(server: RunningServer, path: str) -> RawConnection:
    connection = await server.open()
    await connection.send(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    return connection


async def disconnect(connection: RawConnection, how: str) -> None:
    if how == "shutdown of the sending side":
        await connection.stream.send_eof()
        return
    if how == "reset":
        connection.stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    await connection.stream.aclose()


@pytest.mark.parametrize("how", DISCONNECTS)
async def test_disconnect_cancels_a_handler_that_asks_for_it(how: str) -> None:
    async with serving_app() as (app, server):
        connection = await get(server, "/hold")
        with trio.fail_after(WAIT_S):
            await app.waiting.wait()
            await disconnect(connection, how)
            await app.ended.wait()
        assert app.events == ["cancelled"]
        await connection.stream.aclose()


async def test_connected_client_gets_its_response() -> None:
    async with serving_app() as (app, server):
        async with await get(server, "/hold") as connection:
            await app.waiting.wait()
            app.proceed.set()
            assert (await connection.response()).body == b"held"
            await connection.send(b"GET /hold HTTP/1.1\r\nHost: x\r\n\r\n")
            assert (await connection.response()).body == b"held"
        assert app.events == ["served", "served"]


async def test_end_of_a_written_response_is_reported_once() -> None:
    async with serving_app() as (app, server):
        async with await get(server, "/claim") as connection:
            app.proceed.set()
            assert (await connection.response()).body == b"claimed"
            with trio.fail_after(WAIT_S):
                await app.ended.wait()  # while the client stays connected
        await wait_all_tasks_blocked()  # the server has closed the connection
    assert app.events == ["claimed", "delivered"]
    assert app.last_request_id == REQUEST_ID  # log lines of the callback belong to the request


async def test_end_of_a_response_is_reported_only_when_a_slow_client_has_read_it() -> None:
    async with serving_app() as (app, server):
        async with await get(server, "/long") as connection:
            received = len(await connection.stream.receive_some(1000))
            await wait_all_tasks_blocked(0.05)  # the buffers of the kernel are full
            assert app.events == []
            with trio.fail_after(WAIT_S):
                while received < LONG:
                    received += len(await connection.stream.receive_some(1_000_000))
                await app.ended.wait()
        assert app.events == ["delivered"]


@pytest.mark.parametrize("how", DISCONNECTS)
async def test_disconnect_before_the_response_is_reported_as_undelivered(how: str) -> None:
    async with serving_app() as (app, server):
        connection = await get(server, "/claim")
        with trio.fail_after(WAIT_S):
            await app.waiting.wait()
            await disconnect(connection, how)
            await wait_all_tasks_blocked(0.01)  # the kernel has delivered it
            app.proceed.set()
            await app.ended.wait()
        assert app.events == ["claimed", "taken back"]
        await connection.stream.aclose()


async def test_response_that_the_client_never_receives_is_reported_as_undelivered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The kernel has taken all of it, and the client has acknowledged only a part."""
    monkeypatch.setattr(acknowledgement, "WAIT_S", 0.3)
    async with serving_app() as (app, server), await get(server, "/buffered"):
        with trio.fail_after(WAIT_S):
            await app.ended.wait()
        assert app.events == ["taken back"]


async def test_response_that_the_client_rejects_is_reported_as_undelivered() -> None:
    async with serving_app() as (app, server):
        connection = await get(server, "/buffered")
        await wait_all_tasks_blocked(0.05)  # all of it is in the buffers of the kernel
        await disconnect(connection, "reset")
        with trio.fail_after(WAIT_S):
            await app.ended.wait()
        assert app.events == ["taken back"]


async def test_disconnect_during_the_response_is_reported_as_undelivered() -> None:
    async with serving_app() as (app, server):
        connection = await get(server, "/long")
        assert await connection.stream.receive_some(1000)
        await disconnect(connection, "reset")
        with trio.fail_after(WAIT_S):
            await app.ended.wait()
        assert app.events == ["taken back"]
