"""Requests to other servers: slow name servers."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import trio
import trio.testing

from sso.core.outgoing_http import OutgoingClient, OutgoingLimits
from tests.kit.conditions import until_true
from tests.kit.name_server import resolve_names

MAX_REQUESTS = 3


class SlowNameServer:
    """Answers no question until ``answer`` is set."""

    def __init__(self) -> None:
        self.questions: list[Any] = []
        self.answer = threading.Event()

    def resolve(self, host: Any) -> str:
        self.questions.append(host)
        self.answer.wait()
        return "192.0.2.1"


@pytest.fixture
def name_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowNameServer]:
    server = SlowNameServer()
    resolve_names(monkeypatch, server.resolve)
    yield server
    server.answer.set()


async def test_slow_name_server_takes_no_thread_that_others_share(name_server: SlowNameServer) -> None:
    limits = OutgoingLimits(timeout_s=600.0, max_bytes=0, max_requests=MAX_REQUESTS)
    client = OutgoingClient(None, limits, lambda _: True)
    await client.check_host("https://192.0.2.1/")  # imports httpx in a thread
    async with trio.open_nursery() as nursery:
        for number in range(2 * MAX_REQUESTS):
            nursery.start_soon(client.check_host, f"https://slow{number}.example.com/")
        await until_true(lambda: len(name_server.questions) >= MAX_REQUESTS)
        await trio.testing.wait_all_tasks_blocked()
        assert trio.to_thread.current_default_thread_limiter().borrowed_tokens == 0
        assert len(name_server.questions) == MAX_REQUESTS
        await client.check_host("https://192.0.2.1/")  # a numeric address needs no thread
        nursery.cancel_scope.cancel()  # requests end although their threads do not
    assert not name_server.answer.is_set()
