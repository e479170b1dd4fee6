"""Documents that clients publish: how often they are read, how long they count, and where they may be."""

import threading
from typing import Any

import pytest
import trio
import trio.testing

from sso.core.net import parse_network
from sso.core.outgoing_http import NoAnswer, OutgoingAnswer, OutgoingClient, OutgoingLimits
from sso.core.receiver_addresses import ReceiverAddresses
from sso.oauth.clients.fetched_documents import (
    FRESH_S,
    LIMITS,
    MAX_DOCUMENTS,
    RETRY_S,
    USABLE_S,
    DocumentUnavailable,
    FetchedDocuments,
)
from tests.kit.document_server import document_server
from tests.kit.server import SLOW_MACHINE_S
from tests.oauth.test_backchannel_logout_addresses import ChangingResolver

URL = "https://client.example/jwks"


class Publisher:
    """Stands in for the requests, so that the clock of the test decides."""

    def __init__(self, delay_s: float = 1.0) -> None:
        self.body: bytes | None = b'{"number": 1}'  # None: an outage
        self.requests = 0
        self.delay_s = delay_s

    async def send(self, *_: Any) -> OutgoingAnswer:
        self.requests += 1
        await trio.sleep(self.delay_s)
        if self.body is None:
            raise NoAnswer("no answer")
        return OutgoingAnswer(200, self.body)


def documents_of(client: Any) -> FetchedDocuments[dict[str, int]]:
    return FetchedDocuments(client, lambda value: value, allow_http=True)


async def test_document_is_read_again_when_it_is_old(autojump_clock: trio.testing.MockClock) -> None:
    publisher = Publisher()
    documents = documents_of(publisher)
    for _ in range(3):
        assert await documents.get(URL) == {"number": 1}
    publisher.body = b'{"number": 2}'
    await trio.sleep(FRESH_S - 10)
    assert await documents.get(URL) == {"number": 1}
    await trio.sleep(20)
    assert await documents.get(URL) == {"number": 2}
    assert publisher.requests == 2


async def test_insufficient_document_is_read_again_once_in_an_interval(
    autojump_clock: trio.testing.MockClock,
) -> None:
    publisher = Publisher()
    documents = documents_of(publisher)
    started = trio.current_time()
    async with trio.open_nursery() as nursery:
        for moment in range(40):  # a stranger who sends unknown ids, four times a second
            nursery.start_soon(wait_and_get, documents, moment / 4)
    assert publisher.requests <= 1 + (trio.current_time() - started) / RETRY_S + 1
    publisher.body = b'{"number": 2}'
    await trio.sleep(RETRY_S)
    assert await documents.get(URL, lambda document: document["number"] == 2) == {"number": 2}


async def wait_and_get(documents: FetchedDocuments[dict[str, int]], delay_s: float) -> None:
    await trio.sleep(delay_s)
    assert await documents.get(URL, lambda document: document["number"] == 2) == {"number": 1}


async def test_concurrent_callers_share_a_request_and_those_with_a_document_do_not_wait(
    autojump_clock: trio.testing.MockClock,
) -> None:
    publisher = Publisher(delay_s=9.0)
    documents = documents_of(publisher)
    async with trio.open_nursery() as nursery:
        for _ in range(100):
            nursery.start_soon(documents.get, URL)
    assert publisher.requests == 1
    await trio.sleep(FRESH_S + 1)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(documents.get, URL)
        await trio.sleep(1)
        with trio.fail_after(1):
            assert await documents.get(URL) == {"number": 1}


async def test_outage_keeps_the_old_document_for_a_bounded_time(autojump_clock: trio.testing.MockClock) -> None:
    publisher = Publisher()
    documents = documents_of(publisher)
    await documents.get(URL)
    publisher.body = None
    await trio.sleep(USABLE_S - 10)
    assert await documents.get(URL) == {"number": 1}
    await trio.sleep(20)
    with pytest.raises(DocumentUnavailable, match="no answer"):
        await documents.get(URL)
    requests = publisher.requests
    for _ in range(50):  # an outage costs one request in an interval
        with pytest.raises(DocumentUnavailable):
            await documents.get(URL)
    assert publisher.requests - requests <= 1
    publisher.body = b'{"number": 3}'
    await trio.sleep(RETRY_S)
    assert await documents.get(URL) == {"number": 3}


async def test_memory_is_bounded(autojump_clock: trio.testing.MockClock) -> None:
    documents = documents_of(Publisher(delay_s=0.0))
    for number in range(MAX_DOCUMENTS + 10):
        await documents.get(f"{URL}/{number}")
    assert len(documents._entries) == MAX_DOCUMENTS


@pytest.mark.parametrize("body", [b"", b"<html>", b'{"a":', b"\xff", b"[" * 100_000])
async def test_unusable_document_is_refused(body: bytes, autojump_clock: trio.testing.MockClock) -> None:
    publisher = Publisher()
    publisher.body = body
    with pytest.raises(DocumentUnavailable):
        await documents_of(publisher).get(URL)


def real_client(*, loopback: bool = True, limits: OutgoingLimits = LIMITS) -> OutgoingClient:
    return OutgoingClient(None, limits, ReceiverAddresses((), loopback=loopback).allows)


async def test_redirect_is_not_followed() -> None:
    with document_server() as target, document_server(status=302, headers={"Location": target.url}) as source:
        with pytest.raises(DocumentUnavailable, match="302"):
            await documents_of(real_client()).get(source.url)
        assert (len(source.requests), target.requests) == (1, [])


# The HTTP library leaves the rest of the answer to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_large_document_is_refused_before_it_is_read() -> None:
    body = b'{"a": "' + b"x" * 65536
    with document_server(body=body, repeats=1000) as server, pytest.raises(DocumentUnavailable, match="more than"):
        await documents_of(real_client()).get(server.url)


async def test_slow_body_ends_with_the_time_limit() -> None:
    limits = OutgoingLimits(timeout_s=1.0, max_bytes=LIMITS.max_bytes, max_requests=1)
    with trio.fail_after(SLOW_MACHINE_S), document_server(hanging=threading.Event()) as server:  # noqa: SIM117
        with pytest.raises(DocumentUnavailable, match="no answer within"):
            await documents_of(real_client(limits=limits)).get(server.url)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]"])
async def test_internal_hosts_are_not_called(host: str) -> None:
    with document_server() as server:
        with pytest.raises(DocumentUnavailable):
            await documents_of(real_client(loopback=False)).get(server.url.replace("127.0.0.1", host))
        assert server.requests == []


async def test_name_with_another_address_later_gets_no_request() -> None:
    """The address is checked and used, so a name that is rebound to an internal one has no effect."""
    resolver = ChangingResolver("8.8.8.8", "127.0.0.1")
    previous = trio.socket.set_custom_hostname_resolver(resolver)
    try:
        with document_server() as server:
            client = OutgoingClient(
                None,
                OutgoingLimits(timeout_s=1.0, max_bytes=1000, max_requests=1),
                ReceiverAddresses((parse_network("8.8.8.8"),), loopback=False).allows,
            )
            with pytest.raises(DocumentUnavailable):
                await documents_of(client).get(f"https://rebound.example:{server.port}/jwks.json")
            assert server.requests == []
    finally:
        trio.socket.set_custom_hostname_resolver(previous)
