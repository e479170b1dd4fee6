"""Clients that send or read slowly, or not at all, are disconnected; slow handlers are not."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import trio
from msgspec.structs import replace
from trio.testing import MockClock, wait_all_tasks_blocked

from sso.serve.http1.connection import Connection
from sso.serve.server_limits import ServerLimits
from tests.kit.raw_http import SHORT_LIMITS, RawConnection, read_body, reply, serving

HEAD = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\na"


async def test_idle_connection_is_closed(virtual_clock: MockClock) -> None:
    async with serving(limits=SHORT_LIMITS) as server:
        assert await server.request_to_end(b"") == b""
        assert (await server.request_to_end(HEAD)).count(b"HTTP/1.1 200") == 1


async def test_request_that_was_not_read_yet_when_the_keep_alive_time_ends_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process may have been busy with other things when the request arrived."""
    served: list[Connection] = []
    run = Connection.run

    async def remember(connection: Connection) -> None:
        served.append(connection)
        await run(connection)

    monkeypatch.setattr(Connection, "run", remember)
    async with serving(path=str(tmp_path / "socket")) as server, await server.open() as connection:
        await connection.send(HEAD)
        await connection.response()
        await wait_all_tasks_blocked()  # the server waits for the next request
        os.write(connection.stream.socket.fileno(), HEAD)
        served[0].expire()
        assert (await connection.response()).status == 200


@pytest.mark.parametrize("is_separate", [False, True])
async def test_empty_line_after_a_body_leaves_the_connection_idle(is_separate: bool, virtual_clock: MockClock) -> None:
    async with serving(limits=SHORT_LIMITS) as server, await server.open() as connection:
        await connection.send(POST, b"" if is_separate else b"\r\n")
        assert (await connection.response()).status == 200
        if is_separate:
            await connection.send(b"\r\n")
        assert await connection.read_to_end() == b""


@pytest.mark.parametrize("is_separate", [False, True])
async def test_request_after_an_empty_line_is_answered(is_separate: bool, virtual_clock: MockClock) -> None:
    async with serving() as server, await server.open() as connection:
        await connection.send(POST, b"\r\n")
        await connection.response()
        if is_separate:
            await wait_all_tasks_blocked()
        await connection.send(POST)
        assert (await connection.response()).json["body"] == "a"


async def test_empty_line_after_a_body_does_not_delay_the_shutdown(virtual_clock: MockClock) -> None:
    limits = ServerLimits(drain_s=100, head_s=100)
    async with serving(limits=limits) as server, await server.open() as connection:
        await connection.send(POST + b"\r\n")
        await connection.response()
        await wait_all_tasks_blocked()
        began = trio.current_time()
        server.stop.set()
        assert await connection.read_to_end() == b""
        assert trio.current_time() - began < limits.drain_s / 2


async def test_slow_head_is_rejected(virtual_clock: MockClock) -> None:
    limits = replace(SHORT_LIMITS, keep_alive_s=60)
    async with serving(limits=limits) as server, await server.open() as connection:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(send_slowly, connection, HEAD[:-2] + b"X: " + b"a" * 1000)
            response = await connection.response()
            nursery.cancel_scope.cancel()
        assert (response.status, response.headers["connection"]) == (408, "close")
        assert await connection.is_closed()


async def send_slowly(connection: RawConnection, data: bytes) -> None:
    """Sends a byte at a time, often enough for any limit that starts again with each byte."""
    try:
        for byte in data:
            await connection.send(bytes([byte]))
            await trio.sleep(0.05)
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        pass


@pytest.mark.parametrize("framing", [b"Content-Length: 1000", b"Transfer-Encoding: chunked"])
async def test_slow_body_is_rejected(framing: bytes, virtual_clock: MockClock) -> None:
    async def read(scope: Any, receive: Any, send: Any) -> None:
        await reply(send, await read_body(receive))

    head = b"POST / HTTP/1.1\r\nHost: x\r\n" + framing + b"\r\n\r\n"
    async with serving(read, SHORT_LIMITS) as server, await server.open() as connection:
        await connection.send(head)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(send_slowly, connection, b"1\r\na\r\n" * 200)
            assert (await connection.response()).status == 408
            nursery.cancel_scope.cancel()


async def test_client_that_does_not_read_is_disconnected(virtual_clock: MockClock) -> None:
    ended = trio.Event()

    async def flood(scope: Any, receive: Any, send: Any) -> None:
        try:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            while True:
                await send({"type": "http.response.body", "body": b"a" * 1_000_000, "more_body": True})
                await trio.lowlevel.checkpoint()
        finally:
            ended.set()

    async with serving(flood, SHORT_LIMITS) as server, await server.open() as connection:
        await connection.send(HEAD)
        with trio.fail_after(60):
            await ended.wait()
        assert await connection.read_to_end()


async def test_slow_reader_gets_all_of_a_long_response(virtual_clock: MockClock) -> None:
    async def long(scope: Any, receive: Any, send: Any) -> None:
        await reply(send, b"a" * 8_000_000)

    async with serving(long) as server, await server.open() as connection:
        await connection.send(HEAD)
        await trio.sleep(0.1)  # until the buffers of the kernel are full
        assert len((await connection.response()).body) == 8_000_000
        await connection.send(HEAD)
        assert (await connection.response()).status == 200


@pytest.mark.parametrize(("min_read_bytes_per_s", "is_complete"), [(1.0, True), (1e12, False)])
async def test_client_that_goes_on_reading_has_time_for_a_long_response(
    min_read_bytes_per_s: float, is_complete: bool, virtual_clock: MockClock
) -> None:
    size = 30_000_000  # more than the buffers of the kernel hold

    async def long(scope: Any, receive: Any, send: Any) -> None:
        await reply(send, b"a" * size)

    limits, received, pauses = replace(SHORT_LIMITS, min_read_bytes_per_s=min_read_bytes_per_s), 0, 0
    async with serving(long, limits) as server, await server.open() as connection:
        await connection.send(HEAD)
        with suppress(trio.BrokenResourceError):
            while received < size and (data := await connection.stream.receive_some(1_000_000)):
                received += len(data)
                if received > pauses * 1_000_000:
                    pauses += 1
                    await trio.sleep(limits.write_s / 10)
    assert (received >= size) == is_complete


async def test_handler_may_take_longer_than_every_limit_of_the_client(virtual_clock: MockClock) -> None:
    async def think(scope: Any, receive: Any, send: Any) -> None:
        await trio.sleep(0.8)
        await reply(send, b"42")

    async with serving(think, SHORT_LIMITS) as server:
        assert (await server.request(HEAD)).body == b"42"


async def test_response_before_the_end_of_a_slow_body_closes_the_connection(virtual_clock: MockClock) -> None:
    async def impatient(scope: Any, receive: Any, send: Any) -> None:
        with trio.move_on_after(0.1):
            await read_body(receive)
        await reply(send, b"too slow", 408)

    async with serving(impatient) as server, await server.open() as connection:
        await connection.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc")
        response = await connection.response()
        assert (response.status, response.headers["connection"]) == (408, "close")
        assert await connection.is_closed()
