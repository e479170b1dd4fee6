"""What a handler learns of its client: a disconnect, and a response that was not delivered."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.lowlevel
from trio.testing import wait_all_tasks_blocked

from sso.serve import acknowledgement
from tests.kit.raw_http import RunningServer, serving
from tests.kit.waiting_app import LONG, REQUEST_ID, App, disconnect, get

WAIT_S = 60
DISCONNECTS = ["close", "reset", "shutdown of the sending side"]


@asynccontextmanager
async def serving_app() -> AsyncIterator[tuple[App, RunningServer]]:
    app = App()

    async def handler(scope: Any, receive: Any, send: Any) -> None:
        await app.quart(scope, receive, send)

    async with serving(handler) as server:
        yield app, server


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
