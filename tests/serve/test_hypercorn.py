"""The alternative HTTP server: what is added to hypercorn, and that it serves requests, WebSockets and a drain."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio_websocket
from trio.testing import wait_all_tasks_blocked

from sso.serve.hypercorn_server import serve_with_hypercorn
from sso.serve.server_limits import ServerLimits
from tests.kit.clear_text_http2 import PREFACE, UPGRADES, forged_request
from tests.kit.clear_text_http2 import get as request_with
from tests.kit.protocol_errors import VIOLATIONS, talk, violate
from tests.kit.raw_http import App, RawConnection, RunningServer, echo, with_lifespan
from tests.kit.waiting_app import App as WaitingApp
from tests.kit.waiting_app import disconnect, get

WAIT_S = 60


@asynccontextmanager
async def serving(handler: App = echo) -> AsyncIterator[RunningServer]:
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    server = RunningServer(listener.getsockname())

    async def serve(*, task_status: trio.TaskStatus[None]) -> None:
        app, limits = with_lifespan(handler), ServerLimits(drain_s=2.0)
        await serve_with_hypercorn(app, [listener], server.stop, task_status.started, limits)
        server.stopped.set()

    async with trio.open_nursery() as nursery:
        await nursery.start(serve)
        yield server
        server.stop.set()
        nursery.cancel_scope.deadline = trio.current_time() + WAIT_S


async def post(connection: RawConnection, body: bytes) -> Any:
    await connection.send(b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body), body)
    return (await connection.response()).json


async def test_requests_of_a_connection_are_answered() -> None:
    async with serving() as server, await server.open() as connection:
        assert (await post(connection, b"first"))["body"] == "first"
        assert (await post(connection, b"second"))["body"] == "second"


async def test_websocket_exchanges_messages() -> None:
    async def reverse(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        message = await receive()
        await send({"type": "websocket.send", "text": message["text"][::-1]})

    async with serving(reverse) as server:
        url = f"ws://127.0.0.1:{server.address[1]}/"
        async with trio_websocket.open_websocket_url(url) as client:
            await client.send_message("abc")
            assert await client.get_message() == "cba"


@pytest.mark.parametrize("name", UPGRADES)
async def test_application_sees_no_request_of_http_2_without_tls(name: str) -> None:
    versions: list[str] = []

    async def record(scope: Any, receive: Any, send: Any) -> None:
        versions.append(scope["http_version"])
        await echo(scope, receive, send)

    async with serving(record) as server:
        for first in (request_with(UPGRADES[name]), b""):
            async with await server.open() as connection:
                await connection.send(first, forged_request() if first else PREFACE + forged_request())
                with trio.move_on_after(0.2):
                    await connection.read_to_end()
    assert set(versions) <= {"1.1"}


@pytest.mark.parametrize("name", VIOLATIONS)
async def test_protocol_error_of_a_client_does_not_end_the_server(name: str) -> None:
    async with serving(talk) as server:
        with trio.move_on_after(0.2):  # hypercorn keeps some of these connections until its idle timeout
            await violate(server, VIOLATIONS[name])
        async with await server.open() as connection:
            await connection.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert (await connection.response()).status == 200


@asynccontextmanager
async def serving_handlers() -> AsyncIterator[tuple[WaitingApp, RunningServer]]:
    app = WaitingApp()

    async def handler(scope: Any, receive: Any, send: Any) -> None:
        await app.quart(scope, receive, send)

    async with serving(handler) as server:
        yield app, server


async def test_end_of_a_written_response_is_reported_once() -> None:
    async with serving_handlers() as (app, server):
        async with await get(server, "/claim") as connection:
            app.proceed.set()
            assert (await connection.response()).body == b"claimed"
            with trio.fail_after(WAIT_S):
                await app.ended.wait()
        await wait_all_tasks_blocked()
    assert app.events == ["claimed", "delivered"]


@pytest.mark.parametrize("how", ["close", "reset"])
async def test_disconnect_cancels_a_handler_and_is_reported_as_undelivered(how: str) -> None:
    async with serving_handlers() as (app, server):
        connection = await get(server, "/hold")
        with trio.fail_after(WAIT_S):
            await app.waiting.wait()
            await disconnect(connection, how)
            await app.ended.wait()
        assert app.events == ["cancelled"]


async def test_request_in_flight_is_answered_when_the_server_stops() -> None:
    async with serving_handlers() as (app, server), await get(server, "/hold") as connection:
        await app.waiting.wait()
        server.stop.set()
        await wait_all_tasks_blocked()
        app.proceed.set()
        assert (await connection.response()).body == b"held"
        with trio.fail_after(WAIT_S):
            await server.stopped.wait()
