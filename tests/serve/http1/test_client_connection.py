"""What a handler that waits learns of its client, with either server: that it left, that it did not get its answer."""

import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.lowlevel
from quart_trio import QuartTrio

from sso.web.client_connection import client_connection
from sso.web.fast_quart.app import FastQuart
from tests.kit.raw_http import SERVERS, RawConnection, Running, serving

pytestmark = pytest.mark.parametrize("kind", SERVERS)


class Desk:
    """Handlers that wait, and what became of them."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.waiting = trio.Event()
        self.go = trio.Event()
        self.over = trio.Event()
        self.app: QuartTrio = FastQuart("desk")
        self.app.get("/hold")(self.hold)
        self.app.get("/claim")(self.claim)
        self.app.get("/long")(self.long)

    async def hold(self) -> str:
        try:
            with client_connection().cancel_on_disconnect(), client_connection().cancel_on_disconnect():
                self.waiting.set()
                await self.go.wait()
            self.events.append("served")
        except trio.Cancelled:
            self.events.append("cancelled")
            raise
        finally:
            self.over.set()
        return "held"

    async def claim(self) -> str:
        client_connection().on_undelivered = self.undo
        self.waiting.set()
        with trio.CancelScope(shield=True):
            await self.go.wait()
        self.events.append("claimed")
        return "claimed"

    async def long(self) -> str:
        client_connection().on_undelivered = self.undo
        return "a" * 20_000_000

    async def undo(self) -> None:
        await trio.lowlevel.checkpoint()  # it may wait, whatever has been cancelled
        self.events.append("undone")
        self.over.set()


@asynccontextmanager
async def desk_of(kind: str) -> AsyncIterator[tuple[Desk, Running]]:
    desk = Desk()

    async def handler(scope: Any, receive: Any, send: Any) -> None:
        await desk.app(scope, receive, send)

    async with serving(kind, handler) as server:
        yield desk, server


async def ask(server: Running, path: str) -> RawConnection:
    raw = await server.open()
    await raw.send(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    return raw


def reset(raw: RawConnection) -> None:
    """Close at once, without the usual courtesies."""
    raw.stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@pytest.mark.parametrize("how", ["closes", "resets", "says no more"])
async def test_a_client_that_leaves_ends_a_watched_request(kind: str, how: str) -> None:
    async with desk_of(kind) as (desk, server):
        raw = await ask(server, "/hold")
        with trio.fail_after(5):
            await desk.waiting.wait()
            if how == "says no more":
                await raw.stream.send_eof()
            else:
                if how == "resets":
                    reset(raw)
                await raw.stream.aclose()
            await desk.over.wait()
        assert desk.events == ["cancelled"]
        await raw.stream.aclose()


async def test_a_client_that_stays_is_served(kind: str) -> None:
    async with desk_of(kind) as (desk, server):
        async with await ask(server, "/hold") as raw:
            await desk.waiting.wait()
            desk.go.set()
            assert (await raw.answer()).body == b"held"
            await raw.send(b"GET /hold HTTP/1.1\r\nHost: x\r\n\r\n")
            assert (await raw.answer()).body == b"held"
        assert desk.events == ["served", "served"]


async def test_what_was_written_is_not_undone(kind: str) -> None:
    async with desk_of(kind) as (desk, server):
        async with await ask(server, "/claim") as raw:
            desk.go.set()
            assert (await raw.answer()).body == b"claimed"
        await trio.sleep(0.05)
        assert desk.events == ["claimed"]


@pytest.mark.parametrize("how", ["closes", "resets", "says no more"])
async def test_what_could_not_be_written_is_undone(kind: str, how: str) -> None:
    async with desk_of(kind) as (desk, server):
        raw = await ask(server, "/claim")
        with trio.fail_after(5):
            await desk.waiting.wait()
            if how == "says no more":
                await raw.stream.send_eof()
            else:
                if how == "resets":
                    reset(raw)
                await raw.stream.aclose()
            await trio.sleep(0.05)
            desk.go.set()
            await desk.over.wait()
        assert desk.events == ["claimed", "undone"]
        await raw.stream.aclose()


async def test_what_was_written_in_part_is_undone(kind: str) -> None:
    async with desk_of(kind) as (desk, server):
        raw = await ask(server, "/long")
        assert await raw.stream.receive_some(1000)
        reset(raw)
        await raw.stream.aclose()
        with trio.fail_after(5):
            await desk.over.wait()
        assert desk.events == ["undone"]
