"""Draining: requests in flight are answered, idle connections are closed, and the time is limited."""

from typing import Any

import pytest
import trio
from msgspec.structs import replace
from trio.testing import MockClock, wait_all_tasks_blocked

from sso.serve.http1.admission import Admission
from sso.serve.http1.refusal_pause import RefusalPause
from tests.kit.raw_http import SHORT_LIMITS, read_body, reply, serving


class Work:
    """An application whose /work waits until `proceed` is set."""

    def __init__(self) -> None:
        self.started = trio.Event()
        self.proceed = trio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body = await read_body(receive)
        if scope["path"] == "/work":
            self.started.set()
            await self.proceed.wait()
        await reply(send, b"done" + body)


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode()


async def test_request_in_flight_is_answered_and_its_connection_closed() -> None:
    work = Work()
    async with serving(work) as server, await server.open() as connection, await server.open() as idle:
        await idle.send(get("/"))
        await idle.response()
        await connection.send(get("/work"))
        await work.started.wait()
        server.stop.set()
        assert await idle.is_closed()
        with pytest.raises(OSError, match="connect"):
            await server.open()
        work.proceed.set()
        response = await connection.response()
        assert (response.body, response.headers["connection"]) == (b"done", "close")
        assert await connection.is_closed()
        with trio.fail_after(60):
            await server.stopped.wait()


async def test_new_connection_may_still_send_its_first_request(virtual_clock: MockClock) -> None:
    async with (
        serving(Work(), SHORT_LIMITS) as server,
        await server.open() as connection,
        await server.open() as silent,
    ):
        await wait_all_tasks_blocked()  # the server has accepted both
        server.stop.set()
        await wait_all_tasks_blocked()  # it is draining
        await connection.send(get("/"))
        assert (await connection.response()).headers["connection"] == "close"
        assert await silent.is_closed()


async def test_request_that_arrived_during_the_pause_after_a_refusal_is_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pausing, proceed = trio.Event(), trio.Event()

    async def pause(_: RefusalPause) -> None:
        pausing.set()
        await proceed.wait()

    monkeypatch.setattr(RefusalPause, "wait", pause)
    monkeypatch.setattr(Admission, "refuses", lambda _, head: head.startswith(b"GET /refused"))
    async with serving(Work()) as server, await server.open() as connection:
        await connection.send(get("/refused"))
        assert (await connection.response()).status == 503
        await pausing.wait()
        await connection.send(get("/"))
        server.stop.set()
        await wait_all_tasks_blocked()  # it is draining
        proceed.set()
        response = await connection.response()
        assert (response.body, response.headers["connection"]) == (b"done", "close")


async def test_connection_that_waits_at_the_listener_is_accepted() -> None:
    async with serving(Work()) as server, await server.open() as connection:
        server.stop.set()  # before the server could accept the connection
        await connection.send(get("/"))
        assert (await connection.response()).status == 200


async def test_request_that_arrived_on_an_idle_connection_is_answered() -> None:
    async with serving(Work()) as server, await server.open() as connection:
        await connection.send(get("/"))
        await connection.response()
        await connection.send(get("/"))
        server.stop.set()
        assert (await connection.response()).status == 200


async def test_request_that_outlasts_the_drain_is_aborted(virtual_clock: MockClock) -> None:
    work = Work()
    limits = replace(SHORT_LIMITS, drain_s=0.2)
    async with serving(work, limits) as server, await server.open() as connection:
        await connection.send(get("/work"))
        await work.started.wait()
        server.stop.set()
        assert await connection.is_closed()
        with trio.fail_after(1):
            await server.stopped.wait()
