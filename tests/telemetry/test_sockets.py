"""Spans of WebSockets and of requests with both HTTP servers."""

from collections.abc import Iterator

import pytest

from tests.kit.conditions import until_true
from tests.kit.held import GET_GSID, POLL, new_game
from tests.kit.otlp import Collector, ReceivedSpan, running_collector
from tests.kit.postgres import Postgres
from tests.kit.server import QUICK, Server, running

ROUTE = "/ws/gameSession/refresh/<gsid>"
UNKNOWN = "6a9ff4b2-3c1d-4e5f-8a7b-9c0d1e2f3a4b"


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with running_collector() as collector:
        yield collector


@pytest.fixture(scope="module")
def server(
    collector: Collector,
    postgres_server: Postgres,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Server]:
    settings = QUICK | {
        "SSO_DATABASE_URL": postgres_server.fresh(),
        "SSO_GSID_HEARTBEAT_S": "1",
        "SSO_OTLP_ENDPOINT": collector.endpoint,
        "SSO_OTLP_INTERVAL_S": "1",
    }
    with running(tmp_path_factory.mktemp("sockets"), **settings) as server:
        yield server


@pytest.fixture
def earlier(collector: Collector) -> set[str]:
    """The spans of earlier tests."""
    return {span.span_id for span in list(collector.spans)}


async def spans_with(collector: Collector, earlier: set[str], attribute: str, value: str) -> list[ReceivedSpan]:
    """Waits for a span with this attribute. Returns all such spans of this test."""

    def find() -> list[ReceivedSpan]:
        new = [span for span in collector.requests() if span.span_id not in earlier]
        return [span for span in new if span.attributes.get(attribute) == value]

    await until_true(lambda: bool(find()))
    return find()


async def test_websocket_has_one_span_which_ends_with_it(
    server: Server, collector: Collector, earlier: set[str]
) -> None:
    game = await new_game(server)
    async with game.socket() as socket:
        for _ in range(3):
            await socket.next("refresh")
    (span,) = await spans_with(collector, earlier, "http.route", ROUTE)
    assert span.name == f"GET {ROUTE}"
    assert span.attributes["http.response.status_code"] == 101
    assert "sso.websocket.close_code" not in span.attributes  # the client closed it
    assert not span.is_error
    names = [child.name for child in collector.children(span)]
    assert "gsid.socket_store.ATTACH" in names
    assert "gsid.socket_store.HEARTBEAT" not in {span.name for span in collector.spans}
    assert game.gsid.encode() not in b"".join(collector.bodies)


async def test_span_of_a_refused_game_session_has_the_close_code_of_the_server(
    server: Server, collector: Collector, earlier: set[str]
) -> None:
    game = await new_game(server)
    game.gsid = UNKNOWN
    async with game.socket() as socket:
        assert (await socket.closed())[0] == 4404
    (span,) = await spans_with(collector, earlier, "http.route", ROUTE)
    assert span.attributes["sso.websocket.close_code"] == 4404


async def test_span_of_a_websocket_whose_client_vanished_ends(
    server: Server, collector: Collector, earlier: set[str]
) -> None:
    game = await new_game(server)
    async with game.socket() as socket:
        await socket.next("refresh")
        socket.reset()
    (span,) = await spans_with(collector, earlier, "http.route", ROUTE)
    assert span.attributes["http.response.status_code"] == 101


async def test_request_has_a_span_with_its_statements(server: Server, collector: Collector, earlier: set[str]) -> None:
    await new_game(server)
    (span,) = await spans_with(collector, earlier, "http.route", GET_GSID)
    assert collector.children(span)


async def test_span_of_a_held_poll_ends_when_the_client_disconnects(
    server: Server, collector: Collector, earlier: set[str]
) -> None:
    game = await new_game(server)
    collector.metrics.clear()
    async with await game.begin_poll():
        await until_true(lambda: any(metric.value == 1 for metric in collector.values("sso.held_polls")))
    (span,) = await spans_with(collector, earlier, "error.type", "client_disconnected")
    assert span.attributes["http.route"] == POLL
    assert "http.response.status_code" not in span.attributes
