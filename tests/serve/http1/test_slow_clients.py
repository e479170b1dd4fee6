"""Clients that take their time, and those that take too much."""

from dataclasses import replace
from typing import Any

import pytest
import trio

from sso.serve.hypercorn_connection import HypercornConnection
from tests.kit.raw_http import SERVERS, SHORT, body_of, reply, serving

HEAD = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.mark.parametrize("kind", SERVERS)
async def test_who_asks_nothing_is_let_go_without_a_word(kind: str) -> None:
    async with serving(kind, limits=SHORT) as server:
        assert await server.response_bytes(b"") == b""
        assert (await server.response_bytes(HEAD)).count(b"HTTP/1.1 200") == 1


@pytest.mark.parametrize("kind", SERVERS)
async def test_a_head_that_drips_is_not_waited_for(kind: str) -> None:
    async with serving(kind, limits=replace(SHORT, keep_alive_s=60)) as server, await server.open() as raw:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(drip, raw, HEAD[:-2] + b"X: " + b"a" * 1000)
            answer = await raw.answer()
            nursery.cancel_scope.cancel()
        assert (answer.status, answer.headers["connection"]) == (408, "close")
        assert await raw.is_closed()


async def drip(raw: Any, data: bytes) -> None:
    try:
        for byte in data:
            await raw.send(bytes([byte]))
            await trio.sleep(0.01)
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        pass


@pytest.mark.parametrize("kind", SERVERS)
@pytest.mark.parametrize("framing", [b"Content-Length: 1000", b"Transfer-Encoding: chunked"])
async def test_a_body_that_drips_is_not_waited_for(kind: str, framing: bytes) -> None:
    async def read(scope: Any, receive: Any, send: Any) -> None:
        await reply(send, await body_of(receive))

    async with serving(kind, read, SHORT) as server, await server.open() as raw, trio.open_nursery() as nursery:
        nursery.start_soon(drip, raw, b"POST / HTTP/1.1\r\nHost: x\r\n" + framing + b"\r\n\r\n" + b"1\r\na\r\n" * 200)
        assert (await raw.answer()).status == 408
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("kind", SERVERS)
async def test_who_does_not_read_is_not_waited_for(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HypercornConnection, "write_s", SHORT.write_s)
    ended = trio.Event()

    async def flood(scope: Any, receive: Any, send: Any) -> None:
        try:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            while True:
                await send({"type": "http.response.body", "body": b"a" * 1_000_000, "more_body": True})
                await trio.lowlevel.checkpoint()
        finally:
            ended.set()

    async def handler(scope: Any, receive: Any, send: Any) -> None:
        if kind == "builtin":
            await flood(scope, receive, send)
            return
        async with trio.open_nursery() as nursery:  # as Quart does
            nursery.start_soon(flood, scope, receive, send)
            while (await receive())["type"] != "http.disconnect":
                pass
            nursery.cancel_scope.cancel()

    async with serving(kind, handler, SHORT) as server, await server.open() as raw:
        await raw.send(HEAD)
        with trio.fail_after(5):
            await ended.wait()
        assert await raw.rest()  # to the end of the connection


@pytest.mark.parametrize("kind", SERVERS)
async def test_a_slow_reader_gets_all_of_a_long_answer(kind: str) -> None:
    async def long(scope: Any, receive: Any, send: Any) -> None:
        await reply(send, b"a" * 8_000_000)

    async with serving(kind, long) as server, await server.open() as raw:
        await raw.send(HEAD)
        await trio.sleep(0.1)
        assert len((await raw.answer()).body) == 8_000_000
        await raw.send(HEAD)
        assert (await raw.answer()).status == 200


@pytest.mark.parametrize("kind", SERVERS)
async def test_a_handler_may_take_longer_than_any_limit(kind: str) -> None:
    async def think(scope: Any, receive: Any, send: Any) -> None:
        await trio.sleep(0.8)
        await reply(send, b"42")

    async with serving(kind, think, SHORT) as server:
        assert (await server.ask(HEAD)).body == b"42"


@pytest.mark.parametrize("kind", SERVERS)
async def test_answer_before_the_end_of_a_slow_body_ends_the_connection(kind: str) -> None:
    async def impatient(scope: Any, receive: Any, send: Any) -> None:
        with trio.move_on_after(0.1):
            await body_of(receive)
        await reply(send, b"too slow", 408)

    async with serving(kind, impatient) as server, await server.open() as raw:
        await raw.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc")
        answer = await raw.answer()
        assert (answer.status, answer.headers["connection"]) == (408, "close")
        assert await raw.is_closed()
