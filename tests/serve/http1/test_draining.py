"""The end of a worker: nobody who was let in is sent away without an answer, and nobody is waited for in vain."""

from dataclasses import replace
from typing import Any

import pytest
import trio

from sso.serve.server_limits import ServerLimits
from tests.kit.raw_http import SERVERS, SHORT, body_of, reply, serving

LIMITS = ServerLimits(drain_s=2.0, first_request_s=0.2)


class Work:
    def __init__(self) -> None:
        self.begun = trio.Event()
        self.go = trio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body = await body_of(receive)
        if scope["path"] == "/work":
            self.begun.set()
            await self.go.wait()
        await reply(send, b"done" + body)


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode()


@pytest.mark.parametrize("kind", SERVERS)
async def test_what_is_in_flight_is_finished_and_told_to_be_the_last(kind: str) -> None:
    work = Work()
    async with serving(kind, work, LIMITS) as server, await server.open() as raw, await server.open() as idle:
        await idle.send(get("/"))
        await idle.answer()
        await raw.send(get("/work"))
        await work.begun.wait()
        server.stop.set()
        assert await idle.is_closed()
        await trio.sleep(0.1)
        with pytest.raises(OSError, match="connect"):
            await server.open()
        work.go.set()
        answer = await raw.answer()
        assert (answer.body, answer.headers["connection"]) == (b"done", "close")
        assert await raw.is_closed()
        with trio.fail_after(1):
            await server.over.wait()


async def test_who_has_just_come_may_still_ask() -> None:
    async with serving("builtin", Work(), LIMITS) as server, await server.open() as raw, await server.open() as silent:
        await trio.sleep(0.05)
        server.stop.set()
        await trio.sleep(0.05)
        await raw.send(get("/"))
        assert (await raw.answer()).headers["connection"] == "close"
        assert await silent.is_closed()


async def test_who_came_before_the_end_is_let_in() -> None:
    async with serving("builtin", Work(), LIMITS) as server, await server.open() as raw:
        server.stop.set()  # nobody has looked at the connection yet
        await raw.send(get("/"))
        assert (await raw.answer()).status == 200


async def test_what_has_come_on_an_idle_connection_is_answered() -> None:
    async with serving("builtin", Work(), LIMITS) as server, await server.open() as raw:
        await raw.send(get("/"))
        await raw.answer()
        await raw.send(get("/"))
        server.stop.set()
        assert (await raw.answer()).status == 200


async def test_who_takes_longer_than_the_drain_is_cut_off() -> None:
    work = Work()
    async with serving("builtin", work, replace(SHORT, drain_s=0.2)) as server, await server.open() as raw:
        await raw.send(get("/work"))
        await work.begun.wait()
        server.stop.set()
        assert await raw.is_closed()
        with trio.fail_after(1):
            await server.over.wait()
