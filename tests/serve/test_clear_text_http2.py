"""HTTP/2 without TLS is not served: neither by an upgrade nor by its preface, directly or through a proxy."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.kit.clear_text_http2 import PREFACE, UPGRADES, forged_request, get
from tests.kit.raw_http import SHORT_LIMITS, RunningServer, echo, serving


@pytest.mark.parametrize("name", UPGRADES)
async def test_h2c_upgrade_is_answered_with_http_1(name: str, virtual_clock: MockClock) -> None:
    async with serving(limits=SHORT_LIMITS) as server, await server.open() as connection:
        await connection.send(get(UPGRADES[name]))
        response = await connection.response()
        assert response.status == 200
        assert response.json["http_version"] == "1.1"
        assert "upgrade" not in response.headers
        await connection.send(PREFACE)
        everything = await connection.read_to_end()
        assert everything == b"" or everything.startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("method", [b"OPTIONS", b"POST"])
async def test_h2c_upgrade_of_other_methods_is_answered_with_http_1(method: bytes, virtual_clock: MockClock) -> None:
    async with serving(limits=SHORT_LIMITS) as server:
        response = await server.request(method + get(UPGRADES["plain"])[3:])
        assert (response.status, "upgrade" in response.headers) == (200, False)


@pytest.mark.parametrize("sent", [PREFACE, PREFACE[:18], get() + PREFACE, b"\r\n" + PREFACE])
async def test_http_2_preface_is_rejected(sent: bytes, virtual_clock: MockClock) -> None:
    async with serving(limits=SHORT_LIMITS) as server:
        everything = await server.request_to_end(sent)
        responses = everything.split(b"HTTP/1.1 ")[1:]
        assert responses[-1].startswith(b"400 ")
        assert len(responses) == (2 if sent.startswith(b"GET") else 1)
        assert everything.startswith(b"HTTP/1.1 ")


async def test_client_behind_a_proxy_gets_no_tunnel_by_h2c(virtual_clock: MockClock) -> None:
    """The proxy forwards upgrades, which WebSockets need, and cannot check the requests inside a tunnel."""
    seen: list[list[str]] = []

    async def record(scope: Any, receive: Any, send: Any) -> None:
        seen.append([value.decode() for name, value in scope["headers"] if name == b"x-forwarded-for"])
        await echo(scope, receive, send)

    async with serving(record, SHORT_LIMITS) as backend, proxy(backend) as front:
        for upgrade in UPGRADES.values():
            async with await front.open() as connection:
                await connection.send(get(upgrade))
                response = await connection.response()
                assert response.status == 200
                await connection.send(forged_request())
                with trio.move_on_after(1):  # there must be no response to it
                    await connection.read_to_end()
    assert seen == [["192.0.2.1"]] * len(UPGRADES)


@asynccontextmanager
async def proxy(backend: RunningServer) -> AsyncIterator[RunningServer]:
    """Forwards one request with the client's address added; after 101 it passes bytes on, otherwise it closes."""

    async def forward(client: trio.SocketStream) -> None:
        async with client, await backend.open() as connection:
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                head += bytes(await client.receive_some(1))
            line, _, rest = head.partition(b"\r\n")
            await connection.send(line + b"\r\nX-Forwarded-For: 192.0.2.1\r\n" + rest)
            response = await connection.response()
            lines = [f"{name}: {value}" for name, value in response.headers.items()]
            forwarded = "\r\n".join((f"HTTP/1.1 {response.status} x", *lines, "", "")).encode() + response.body
            await client.send_all(forwarded)
            if response.status == 101:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(copy, client, connection.stream)
                    nursery.start_soon(copy, connection.stream, client)

    async def copy(source: trio.SocketStream, target: trio.SocketStream) -> None:
        try:
            async for data in source:
                await target.send_all(data)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass

    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, forward, [listener])
        yield RunningServer(listener.socket.getsockname())
        nursery.cancel_scope.cancel()
