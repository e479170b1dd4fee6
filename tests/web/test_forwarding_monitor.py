"""Forwarding headers of peers that are not in SSO_TRUSTED_PROXIES are ignored, reported, and never open access."""

from collections.abc import Iterator
from typing import Any

import pytest
import trio
import trio.testing
from structlog.testing import capture_logs

from sso.config import load
from sso.db.database import Database
from sso.db.errors import Unavailable
from sso.doctor.checks import check
from sso.log import current_request_id
from sso.web.client_address import TrustedProxies
from sso.web.forwarding_monitor import FORWARDING_HEADERS, ForwardingMonitor, ignored_header
from sso.web.untrusted_proxy_store import record_untrusted_proxy
from tests.kit.browser import query
from tests.kit.conditions import until_true
from tests.kit.game import Game
from tests.kit.postgres import Postgres
from tests.kit.server import QUICK, Server, running, until

EVENT = "proxy.forwarding_header_ignored"
HEADERS = (
    ("X-Forwarded-For", "203.0.113.9"), ("x-forwarded-for", "127.0.0.1"), ("X-Forwarded-For", ""),
    ("X-Forwarded-For", "nonsense"), ("Forwarded", "for=127.0.0.1"), ("Forwarded", "proto=https"),
    ("X-Real-IP", "127.0.0.1"), ("X-Forwarded-Proto", "https"), ("X-Forwarded-Host", "sso.example.com"),
    ("X-Client-IP", "127.0.0.1"), ("True-Client-IP", "127.0.0.1"), ("CF-Connecting-IP", "127.0.0.1"),
    ("Via", "1.1 proxy"),
)  # fmt: skip


def started(postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory, **more: str) -> Any:
    settings = QUICK | {"SSO_DATABASE_URL": postgres_server.fresh(), "SSO_WORKERS": "1", "SSO_LOG_FORMAT": "json"}
    return running(tmp_path_factory.mktemp("forwarding"), **settings, SSO_INFO_ALLOW="127.0.0.0/8", **more)


@pytest.fixture(scope="module")
def unaware(postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server without trusted proxies."""
    with started(postgres_server, tmp_path_factory) as server:
        yield server


@pytest.fixture(scope="module")
def proxied(postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with started(postgres_server, tmp_path_factory, SSO_TRUSTED_PROXIES="127.0.0.0/8") as server:
        yield server


def test_request_forwarded_by_an_untrusted_peer_never_passes_info_allow(unaware: Server) -> None:
    with Game(unaware) as game:
        session = game.register()
        for header in HEADERS:
            refused = game.ask("info", session.gsid, dict([header]))
            assert refused.status_code == 403, header
            assert "ip" not in refused.json()
        assert game.ask("info", session.gsid).status_code == 200


def test_refused_info_request_is_recorded_with_the_setting(unaware: Server) -> None:
    with Game(unaware) as game:
        session = game.register()
        game.ask("info", session.gsid, {"X-Forwarded-For": "203.0.113.9"})
        (row,) = query(unaware, "SELECT found FROM game_violations WHERE gsid = $1", session.gsid)
        assert "SSO_TRUSTED_PROXIES" in row["found"]


def test_forwarding_headers_of_an_untrusted_peer_do_not_change_the_address(unaware: Server) -> None:
    with Game(unaware) as game:
        session = game.register({"X-Forwarded-For": "203.0.113.9", "Forwarded": "for=203.0.113.9"})
        assert session.row("address")["address"] == game.address


def test_untrusted_proxy_is_logged_once_a_minute_with_the_setting(unaware: Server) -> None:
    with Game(unaware) as game:
        for _ in range(20):
            game.http.get("/login", headers={"X-Forwarded-For": "203.0.113.9"})
    event = until(lambda: unaware.log_events(EVENT))[0]
    assert event["level"] == "warning"
    assert event["header"] == "x-forwarded-for" or event["header"] in {name.lower() for name, _ in HEADERS}
    assert "SSO_TRUSTED_PROXIES" in event["advice"]
    # Each worker reports once per minute, and this module may take several.
    assert len(unaware.log_events(EVENT)) < 20


def test_doctor_reports_an_untrusted_proxy_until_it_is_trusted(unaware: Server) -> None:
    with Game(unaware) as game:
        game.http.get("/login", headers={"X-Forwarded-For": "203.0.113.9"})
    until(lambda: query(unaware, "SELECT 1 FROM untrusted_proxies"))
    # A worker reports one header per minute, perhaps that of an earlier test.
    query(unaware, "UPDATE untrusted_proxies SET header = 'x-forwarded-for'")
    (row, *_) = query(unaware, "SELECT peer FROM untrusted_proxies ORDER BY last_seen DESC")
    findings = proxy_findings(unaware)
    assert [finding.good for finding in findings] == [False]
    assert row["peer"] in findings[0].detail
    assert "SSO_TRUSTED_PROXIES" in findings[0].advice
    assert proxy_findings(unaware, SSO_TRUSTED_PROXIES="127.0.0.0/8") == []
    (another_header,) = proxy_findings(unaware, SSO_TRUSTED_PROXIES="127.0.0.0/8", SSO_PROXY_HEADER="Forwarded")
    assert "let it set Forwarded" in another_header.advice
    assert "SSO_TRUSTED_PROXIES" not in another_header.advice


def proxy_findings(server: Server, **changes: str) -> list[Any]:
    settings = load(None, server.settings | changes)
    return [found for found in check(settings, server.settings["SSO_DATABASE_URL"]) if found.name == "proxies"]


def test_header_of_a_trusted_proxy_is_used_and_not_reported(proxied: Server) -> None:
    with Game(proxied) as game:
        session = game.register({"X-Forwarded-For": "203.0.113.9"})
        assert session.row("address")["address"] == "203.0.113.9"
        assert game.ask("info", session.gsid, {"X-Forwarded-For": "127.0.0.7", "Via": "1.1 x"}).status_code == 200
        assert game.ask("info", session.gsid, {"X-Forwarded-For": "203.0.113.9"}).status_code == 403
    assert [event for event in proxied.log_events(EVENT) if event["peer"] == game.address] == []
    assert query(proxied, "SELECT 1 FROM untrusted_proxies WHERE peer = $1", game.address) == []


def test_trusted_proxy_that_sends_another_header_never_passes_info_allow(proxied: Server) -> None:
    with Game(proxied) as game:
        session = game.register()
        assert game.ask("info", session.gsid).status_code == 200
        for header in ({"X-Real-IP": "203.0.113.9"}, {"Forwarded": "for=203.0.113.9"}, {"X-Forwarded-Proto": "https"}):
            assert game.ask("info", session.gsid, header).status_code == 403, header


@pytest.mark.parametrize("name", sorted(FORWARDING_HEADERS))
def test_every_forwarding_header_is_reported(name: bytes) -> None:
    scope = {"client": ("192.0.2.1", 1), "headers": [(b"host", b"localhost"), (name, b"x")]}
    assert ignored_header(scope, TrustedProxies()) == name.decode()
    assert ignored_header(scope | {"client": None}, TrustedProxies()) == name.decode()  # over a Unix socket
    assert ignored_header(scope | {"headers": [(b"host", b"localhost")]}, TrustedProxies()) is None
    # The configured header is named if there is one: it is used once the peer is trusted.
    both = scope | {"headers": [(name, b"x"), (b"x-forwarded-for", b"203.0.113.9")]}
    assert ignored_header(both, TrustedProxies()) == "x-forwarded-for"


def forwarded(number: int = 0) -> dict[str, Any]:
    return {"client": ("192.0.2.1", number), "headers": [(b"x-forwarded-for", b"203.0.113.9")]}


async def test_workers_together_report_a_peer_once(database: Database) -> None:
    outcomes: list[bool] = []

    async def report(header: str) -> None:
        outcomes.append(await record_untrusted_proxy(database, "192.0.2.1", header))

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(report, "x-forwarded-for")
    assert sorted(outcomes) == [False] * 4 + [True]
    assert not await record_untrusted_proxy(database, "192.0.2.1", "via")
    assert await record_untrusted_proxy(database, "192.0.2.2", "via")
    await database.run_sql("UPDATE untrusted_proxies SET last_seen = now() - interval '60 s'", [])
    assert await record_untrusted_proxy(database, "192.0.2.1", "via")


async def test_report_has_the_request_with_the_ignored_header(database: Database, nursery: trio.Nursery) -> None:
    monitor = ForwardingMonitor(TrustedProxies())
    with capture_logs() as logs:
        await nursery.start(monitor.run, database)
        token = current_request_id.set("0123456789abcdef")
        monitor.observe(forwarded())
        current_request_id.reset(token)
        await until_true(lambda: bool(logs))
    nursery.cancel_scope.cancel()
    assert (logs[0]["event"], logs[0]["request"]) == (EVENT, "0123456789abcdef")


async def test_monitor_reports_once_a_minute_also_without_a_database(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    class UnavailableDatabase:
        calls = 0

        async def value(self, *_: object, **__: object) -> None:
            self.calls += 1
            raise Unavailable("down")

    database, monitor = UnavailableDatabase(), ForwardingMonitor(TrustedProxies())
    await nursery.start(monitor.run, database)
    for _ in range(600):
        monitor.observe(forwarded())
        await trio.sleep(1)
    assert database.calls == 10
