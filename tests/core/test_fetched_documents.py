"""Documents at addresses that others have chosen: what is refused, how often a host is asked, and what is kept."""

from collections.abc import Iterator

import pytest
import trio
import trio.testing

from sso.core import fetched_documents
from sso.core.fetched_documents import DocumentUnavailable, FetchedDocuments
from sso.core.net import parse_network
from sso.core.outgoing_http import OutgoingClient, OutgoingLimits
from sso.core.receiver_addresses import ReceiverAddresses
from tests.kit.document_host import DocumentHost, document_host
from tests.kit.name_server import change_addresses
from tests.kit.server import until

PATIENT = OutgoingLimits(timeout_s=60.0, max_bytes=5 * 1024, max_requests=4)


@pytest.fixture
def host() -> Iterator[DocumentHost]:
    with document_host() as host:
        yield host


def documents(*, loopback: bool = True, limits: OutgoingLimits = PATIENT) -> FetchedDocuments:
    client = OutgoingClient(None, limits, ReceiverAddresses((), loopback=loopback).allows)
    return FetchedDocuments(client, allow_http=True)


def problem_of(fetched: FetchedDocuments, url: str) -> str:
    with pytest.raises(DocumentUnavailable) as error:
        trio.run(fetched.get, url)
    return str(error.value)


def test_documents_that_are_refused(host: DocumentHost) -> None:
    target = host.put("/target", {"secret": "of an internal host"})
    answers = {
        host.put("/moved", b"", 302, Location=target): "status 200, not 302",
        host.put("/gone", b"", 404): "status 200, not 404",
        host.put("/large", {"text": "x" * 6000}): "more than 5120 bytes",
        host.put("/zipped", {}, Content_Encoding="gzip"): "Content-Encoding",
        host.put("/page", {}, Content_Type="text/html"): "content type",
        host.put("/list", []): "JSON object",
        host.put("/broken", b"{"): "valid JSON",
        host.put("/nested", b'{"a":' + b"[" * 64 + b"]" * 64 + b"}"): "at most 64 levels",
        "http://192.0.2.1/d": "must be an address that begins with https://",
        "https://user@example.com/d": "must be an address that begins with https://",
        "file:///etc/passwd": "must be an address that begins with https://",
    }
    for url, reason in answers.items():
        assert reason in problem_of(documents(), url), url
    assert "/target" not in host.requests
    internal = f"https://127.0.0.1:{host.port}/target"
    assert "not allowed" in problem_of(documents(loopback=False), internal)
    assert "/target" not in host.requests
    slow = host.put("/slow", b"{", X_Slow="1")
    assert "no answer within" in problem_of(documents(limits=OutgoingLimits(1.0, 5120, 4)), slow)


def test_name_that_resolves_to_an_internal_address_is_refused(host: DocumentHost) -> None:
    host.put("/target", {})
    assert "not allowed" in problem_of(documents(loopback=False), f"https://localhost:{host.port}/target")
    assert not host.requests


def test_concurrent_callers_share_a_request_and_its_failure(host: DocumentHost) -> None:
    async def ask(url: str) -> None:
        fetched = documents()
        results: list[dict[str, int] | None] = []

        async def one() -> None:
            try:
                results.append((await fetched.get(url)).content)
            except DocumentUnavailable:
                results.append(None)

        async with trio.open_nursery() as nursery:
            for _ in range(50):
                nursery.start_soon(one)
        assert results in ([{"a": 1}] * 50, [None] * 50)

    trio.run(ask, host.put("/good", {"a": 1}))
    trio.run(ask, host.put("/bad", b"", 500))
    assert sorted(host.requests) == ["/bad", "/good"]


def test_caller_during_a_request_waits_for_its_answer(host: DocumentHost) -> None:
    url = host.put("/held", {"a": 1}, X_Slow="1")

    async def ask() -> None:
        fetched = documents()
        results: list[dict[str, int]] = []

        async def one() -> None:
            results.append((await fetched.get(url)).content)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(one)
            await trio.to_thread.run_sync(until, lambda: host.requests)
            nursery.start_soon(one)
            await trio.testing.wait_all_tasks_blocked()
            host.slow.set()
        assert results == [{"a": 1}] * 2

    trio.run(ask)
    assert host.requests == ["/held"]


def test_kept_document_is_used_while_it_cannot_be_fetched(host: DocumentHost, monkeypatch: pytest.MonkeyPatch) -> None:
    url = host.put("/document", {"version": 1}, Cache_Control="public, max-age=1000000")

    async def work() -> None:
        fetched = documents()
        first = await fetched.get(url)
        host.put("/document", {"version": 2})
        assert (await fetched.get(url)).content == {"version": 1}
        # A newer one is demanded, but a request was made just now.
        assert (await fetched.get(url, newer_than=first.fetched)).content == {"version": 1}
        monkeypatch.setattr(fetched_documents, "RETRY_S", 0)
        assert (await fetched.get(url, newer_than=first.fetched)).content == {"version": 2}
        host.put("/document", b"", 500)
        second = await fetched.get(url)
        assert (await fetched.get(url, newer_than=second.fetched)).content == {"version": 2}
        monkeypatch.setattr(fetched_documents, "MAX_STALE_S", -1)
        with pytest.raises(DocumentUnavailable, match="500"):
            await fetched.get(url)

    trio.run(work)


def test_number_of_kept_documents_is_limited(host: DocumentHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetched_documents, "MAX_DOCUMENTS", 2)

    async def work() -> None:
        fetched = documents()
        for path in ("/a", "/b", "/c", "/a", "/c"):
            await fetched.get(host.put(path, {}))

    trio.run(work)
    assert host.requests == ["/a", "/b", "/c", "/a"]


def test_caller_with_a_kept_document_does_not_wait_for_the_request_of_another(host: DocumentHost) -> None:
    url = host.put("/document", {"version": 1})

    async def work() -> None:
        fetched = documents()
        first = await fetched.get(url)
        fetched._entries[url].age_s = 0  # it is old
        fetched._entries[url].tried = float("-inf")
        host.put("/document", b"{", X_Slow="1")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fetched.get, url)
            await trio.testing.wait_all_tasks_blocked()
            assert await fetched.get(url) is first
            host.slow.set()

    trio.run(work)


def test_name_that_is_rebound_to_an_internal_address_gets_no_request(
    host: DocumentHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The address that was checked is the one that is used."""
    host.put("/target", {})
    limits = OutgoingLimits(timeout_s=1.0, max_bytes=1000, max_requests=1)
    client = OutgoingClient(None, limits, ReceiverAddresses((parse_network("192.0.2.1"),), loopback=False).allows)

    change_addresses(monkeypatch, "192.0.2.1", "127.0.0.1")

    async def work() -> None:
        with pytest.raises(DocumentUnavailable):
            await FetchedDocuments(client, allow_http=True).get(f"https://rebound.example:{host.port}/target")

    trio.run(work)
    assert not host.requests
