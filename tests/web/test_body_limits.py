"""The limit of a route holds while the body arrives: no more of it is kept, and the refusal comes at once."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio

from sso.core.fair_thread import FairThread
from sso.serve.server_limits import ServerLimits
from sso.web.body import InvalidBody
from sso.web.client_address import TrustedProxies
from sso.web.fast_quart.app import FastQuart
from sso.web.fast_quart.request import LazyBody
from sso.web.request import read_body
from tests.kit.raw_http import RawConnection, RunningServer, serving

LIMIT = 1000
DRAIN_S = 100.0  # a server that stops by its end, and not at once, fails the test
HEAD = b"POST %b HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n%b\r\n\r\n"


@asynccontextmanager
async def application() -> AsyncIterator[RunningServer]:
    app = FastQuart("limits")
    app.config.update(
        MAX_CONTENT_LENGTH=1_000_000,
        BODY_TIMEOUT=30,
        PARSERS=FairThread(1),
        PROXIES=TrustedProxies((), "x-forwarded-for"),
    )

    async def small() -> str:
        return str(len((await read_body(max_bytes=LIMIT)).raw))

    async def large() -> str:
        return str(len((await read_body(max_bytes=1_000_000)).raw))

    async def largest() -> str:
        return str(len((await read_body(max_bytes=3_000_000)).raw))

    async def none() -> str:
        return "none"

    async def refuse(error: InvalidBody) -> tuple[str, int]:
        return str(error), error.status

    for handler in (small, large, largest, none):
        app.post(f"/{handler.__name__}")(handler)
    app.register_error_handler(InvalidBody, refuse)

    async def run(scope: Any, receive: Any, send: Any) -> None:
        await app(scope, receive, send)

    async with serving(run, ServerLimits(drain_s=DRAIN_S)) as server:
        yield server


def head(path: bytes, framing: bytes) -> bytes:
    return HEAD % (path, framing)


def json_of(size: int) -> bytes:
    return b'{"a":"' + b"x" * (size - 8) + b'"}'


async def test_declared_length_beyond_the_limit_is_refused_before_the_body_comes() -> None:
    async with application() as server, await server.open() as connection:
        await connection.send(head(b"/small", b"Content-Length: 1001"))
        response = await connection.response()
        assert (response.status, response.body) == (413, b"body is larger than 1000 bytes")
        assert response.headers["connection"] == "close"


async def test_unfinished_chunks_beyond_the_limit_are_refused() -> None:
    async with application() as server, await server.open() as connection:
        await connection.send(head(b"/small", b"Transfer-Encoding: chunked"))
        for _ in range(11):
            await connection.send(b"64\r\n" + b" " * 100 + b"\r\n")
        assert (await connection.response()).status == 413


@pytest.mark.parametrize("path", [b"/small", b"/large"])
async def test_body_within_the_limit_is_read(path: bytes) -> None:
    size = LIMIT if path == b"/small" else 999_999
    async with application() as server, await server.open() as connection:
        for _ in range(2):
            await connection.send(head(path, b"Content-Length: %d" % size), json_of(size))
            assert (await connection.response()).body == b"%d" % size
        await connection.send(
            head(path, b"Transfer-Encoding: chunked"), b"%x\r\n%b\r\n0\r\n\r\n" % (size, json_of(size))
        )
        assert (await connection.response()).body == b"%d" % size


@pytest.mark.parametrize(("size", "status"), [(3_000_000, 200), (3_000_001, 413)])
async def test_limit_of_a_route_may_be_higher_than_that_of_the_application(size: int, status: int) -> None:
    async with application() as server, await server.open() as connection:
        await connection.send(head(b"/largest", b"Content-Length: %d" % size))
        if status == 200:
            await connection.send(json_of(size))
        assert (await connection.response()).status == status


def test_limit_of_a_route_may_be_higher_with_other_servers() -> None:
    body = LazyBody(2_000_000, 1_000_000)
    body.limit(3_000_000)
    assert body._must_raise is None
    body.limit(1_999_999)
    assert body._must_raise is not None


async def test_body_that_no_handler_reads_is_not_received() -> None:
    async with application() as server, await server.open() as connection:
        await connection.send(head(b"/none", b"Content-Length: 1000000"))
        response = await connection.response()
        assert (response.body, response.headers["connection"]) == (b"none", "close")


async def send_long_body(connection: RawConnection) -> None:
    await connection.send(head(b"/small", b"Content-Length: 200000"))
    for _ in range(20):
        await connection.send(b" " * 10_000)


async def test_413_reaches_a_client_that_goes_on_sending_and_ends_the_connection() -> None:
    """It is tried many times, as the order in which the tasks of a connection run is random."""
    async with application() as server:
        for _ in range(30):
            async with await server.open() as connection, trio.open_nursery() as nursery:
                nursery.start_soon(send_long_body, connection)
                assert (await connection.response()).status == 413
        server.stop.set()
        with trio.fail_after(DRAIN_S / 2):
            await server.stopped.wait()
