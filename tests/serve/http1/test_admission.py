"""A process that is overloaded refuses new requests, and serves them again when the overload is over."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from sso.serve.http1 import admission as admission_module
from sso.serve.http1.admission import CALM_S, EVIDENCE_S, MIN_ACTIVE, SLOW_S, Admission
from sso.serve.http1.refusal_pause import TICK_S, TICKS, RefusalPause
from sso.serve.http1.rejections import simple_body_length
from tests.kit.raw_http import RunningServer, read_body, reply, serving

SOME = 10  # so many requests tell the average


BURST = 3 * MIN_ACTIVE
REQUEST = b"GET / HTTP/1.1"


async def slow_burst(admission: Admission) -> list[float]:
    """Returns when the requests began of a burst that takes too long."""
    await trio.sleep(1)  # a request never begins at 0
    began = [admission.start() for _ in range(BURST)]
    await trio.sleep(4 * SLOW_S)
    return began


async def overload(admission: Admission) -> list[float]:
    """Returns when the requests began that are still in progress."""
    began = await slow_burst(admission)
    for _ in range(2 * SOME):
        admission.finish(began.pop())
    assert admission.refuses(REQUEST)
    return began


async def test_many_slow_requests_are_an_overload_and_held_ones_are_not(autojump_clock: MockClock) -> None:
    admission = Admission()
    began = await slow_burst(admission)
    assert not admission.is_overloaded, "a burst is served as a whole"
    for _ in range(2 * SOME):
        admission.finish(began.pop())
    assert admission.refuses(REQUEST)
    assert not admission.refuses(b"GET /healthz HTTP/1.1")
    await trio.sleep(EVIDENCE_S)
    assert not admission.refuses(REQUEST), "one request shows whether it is over"
    assert admission.refuses(REQUEST), "and the others wait for that"
    admission.finish(began.pop())
    assert admission.refuses(REQUEST)
    while len(began) > MIN_ACTIVE - 1:
        admission.hold(began.pop())
    assert not admission.refuses(REQUEST), "too few are left"


async def test_overloaded_process_works_at_as_many_requests_as_it_finishes_in_time(autojump_clock: MockClock) -> None:
    admission = Admission()
    began = await slow_burst(admission)
    refused = 0
    for _ in range(20):  # a hundred requests in a tenth of a second, and three times as many arrive
        await trio.sleep(0.1)
        for _ in range(100):
            admission.finish(began.pop(0))
            for _ in range(3):
                if admission.refuses(REQUEST):
                    refused += 1
                else:
                    began.append(admission.start())
    assert MIN_ACTIVE <= len(began) <= SLOW_S * 1000 + 100
    assert refused > 20 * 100
    await trio.sleep(CALM_S)
    admission.finish(began.pop(0))
    await trio.sleep(CALM_S + 0.1)
    began.extend(admission.start() for _ in range(BURST))
    for _ in range(SOME):
        admission.finish(began.pop())
        assert not admission.refuses(REQUEST), "the next burst is served as a whole"


async def test_overload_whose_last_requests_are_followed_by_silence_is_over(autojump_clock: MockClock) -> None:
    admission = Admission()
    began = await overload(admission)
    while began:
        admission.finish(began.pop())
    await trio.sleep(CALM_S + 0.1)
    for _ in range(BURST):
        assert not admission.refuses(REQUEST), "the next burst is served as a whole"
        admission.start()


async def test_silence_while_requests_hang_does_not_end_an_overload(autojump_clock: MockClock) -> None:
    """Clients that obey Retry-After come back at the same time."""
    admission = Admission()
    await overload(admission)
    await trio.sleep(CALM_S + 0.1)
    admitted = sum(not admission.refuses(REQUEST) for _ in range(10))
    assert admitted == 1, "one shows whether the overload is over"


async def test_overload_ends_while_many_requests_wait_for_something_else(autojump_clock: MockClock) -> None:
    admission = Admission()
    began = await slow_burst(admission)
    for _ in range(MIN_ACTIVE):
        admission.finish(began.pop())
    assert admission.refuses(REQUEST)
    refused = 0
    for _ in range(100):  # the rest of the burst waits, and others are quick
        await trio.sleep(0.01)
        if admission.refuses(REQUEST):
            refused += 1
        admission.finish(admission.start())  # a health check
    assert refused < 3 * SOME
    assert not admission.refuses(REQUEST)


async def test_requests_that_wait_for_something_else_are_no_overload(autojump_clock: MockClock) -> None:
    admission = Admission()
    began = await slow_burst(admission)
    for _ in range(SOME):
        admission.finish(admission.start())
    await trio.sleep(60)
    for _ in range(SOME):
        admission.finish(began.pop())
        for _ in range(SOME):
            assert not admission.refuses(REQUEST)
            admission.finish(admission.start())


async def test_pause_after_a_refusal_ends_for_all_and_can_be_cancelled(
    autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    pause = RefusalPause()
    nursery.start_soon(pause.run)
    for _ in range(2):
        began = trio.current_time()
        async with trio.open_nursery() as waiting:
            for _ in range(SOME):
                waiting.start_soon(pause.wait)
        assert TICKS * TICK_S - TICK_S <= trio.current_time() - began <= TICKS * TICK_S + 0.001
        with trio.move_on_after(TICK_S) as scope:
            await pause.wait()
        assert scope.cancelled_caught
        await trio.sleep(2)
    nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("head", "length"),
    [
        (b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n", 0),
        (b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 12\r\n\r\n", 12),
        (b"POST /a HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", None),
        (b"POST /a HTTP/1.1\r\nContent-Length: +1\r\n\r\n", None),
        (b"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", None),
        (b"GET /a HTTP/1.1\r\nConnection: close\r\n\r\n", None),
        (b"GET /a HTTP/1.0\r\n\r\n", None),
        (b"HEAD /a HTTP/1.1\r\n\r\n", None),
    ],
)
def test_connection_goes_on_after_a_refusal_only_if_the_end_of_the_request_is_certain(
    head: bytes, length: int | None
) -> None:
    assert simple_body_length(head) == length


async def test_refused_client_keeps_its_connection_and_health_checks_are_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def application(scope: Any, receive: Any, send: Any) -> None:
        await reply(send, scope["path"].encode())

    pauses = 0

    async def pause(_: RefusalPause) -> None:
        nonlocal pauses
        pauses += 1

    monkeypatch.setattr(RefusalPause, "wait", pause)
    monkeypatch.setattr(admission_module, "EVIDENCE_S", float("inf"))
    async with serving(application) as server, await server.open() as connection:
        monkeypatch.setattr(Admission, "is_overloaded", True)
        await connection.send(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await connection.response()).body == b"/healthz"
        await connection.send(b"POST /login HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
        refused = await connection.response()
        assert (refused.status, refused.headers["retry-after"]) == (503, "1")
        assert "connection" not in refused.headers
        assert pauses == 1  # not before the health check
        monkeypatch.setattr(Admission, "is_overloaded", False)
        await connection.send(b"GET /login HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await connection.response()).body == b"/login"
        monkeypatch.setattr(Admission, "is_overloaded", True)
        await connection.send(b"POST /login HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        assert (await connection.response()).headers["connection"] == "close"
        assert await connection.is_closed()


CLIENTS = 5
QUICK = b"GET /quick HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.fixture
def five_are_an_overload(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission_module, "MIN_ACTIVE", CLIENTS)
    monkeypatch.setattr(admission_module, "SLOW_S", -1.0)
    monkeypatch.setattr(admission_module, "EVIDENCE_S", float("inf"))


class SlowApplication:
    """Reads the body, waits for a word to proceed if there was one, and replies with more than the kernel buffers."""

    def __init__(self) -> None:
        self.working = 0
        self.all_work = trio.Event()
        self.proceed = trio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if await read_body(receive):
            self.working += 1
            if self.working == CLIENTS:
                self.all_work.set()
            await self.proceed.wait()
        await reply(send, b"" if scope["path"] == "/quick" else b"a" * 8_000_000)


@asynccontextmanager
async def slow_clients(server: RunningServer, data: bytes) -> AsyncIterator[list[Any]]:
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(await server.open()) for _ in range(CLIENTS)]
        for client in clients:
            await client.send(data)
        await trio.sleep(0.1)  # until the server has read it and waits for the client
        yield clients


async def quick_statuses(server: RunningServer) -> set[int]:
    """The first requests show whether the others are refused."""
    return {(await server.request(QUICK)).status for _ in range(2 * SOME)}


@pytest.mark.usefixtures("five_are_an_overload", "virtual_clock")
async def test_requests_count_while_they_work_and_not_while_they_wait_for_their_body() -> None:
    application = SlowApplication()
    async with serving(application) as server:
        head = b"POST /quick HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n"
        async with slow_clients(server, head + b"ab") as clients:
            assert await quick_statuses(server) == {200}
            for client in clients:
                await client.send(b"cd")
            with trio.fail_after(60):
                await application.all_work.wait()
            assert await quick_statuses(server) == {200, 503}
            application.proceed.set()
            assert [(await client.response()).status for client in clients] == [200] * CLIENTS
        assert (await server.request(QUICK)).status == 200


@pytest.mark.usefixtures("five_are_an_overload", "virtual_clock")
async def test_responses_that_the_client_does_not_read_do_not_count() -> None:
    long = b"GET /long HTTP/1.1\r\nHost: x\r\n\r\n"
    async with serving(SlowApplication()) as server, slow_clients(server, long) as clients:
        assert await quick_statuses(server) == {200}
        assert [len((await client.response()).body) for client in clients] == [8_000_000] * CLIENTS
