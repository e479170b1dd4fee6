"""Traces and metrics of a real server with two workers, received by an OTLP/HTTP collector."""

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from sso.telemetry.otel.export import ExportOptions, open_export
from tests.kit.browser import Browser, new_user
from tests.kit.builders import PASSWORD
from tests.kit.conditions import until_true
from tests.kit.game import Game
from tests.kit.oauth import new_browser, new_site
from tests.kit.otlp import Collector, ReceivedSpan, running_collector
from tests.kit.postgres import Postgres
from tests.kit.server import QUICK, Server, clean_environment, running, until
from tests.kit.smtp import make_certificate

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE}-{PARENT}-01"
TRUSTED, UNTRUSTED = "127.0.0.9", "127.0.0.8"


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with running_collector() as collector:
        yield collector


@pytest.fixture(scope="module")
def server(
    collector: Collector, postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    settings = QUICK | {
        "SSO_DATABASE_URL": postgres_server.fresh(),
        "SSO_WORKERS": "2",
        "SSO_TRUSTED_PROXIES": TRUSTED,
        "SSO_OTLP_ENDPOINT": collector.endpoint,
        "SSO_OTLP_INTERVAL_S": "1",
        "SSO_OTLP_CONTINUE_TRACES": "1",
        "SSO_OTLP_HEADERS": "authorization=Bearer abc, x-team=sso",
        "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=test,service.name=sso-test",
    }
    with running(tmp_path_factory.mktemp("traced"), **settings) as server:
        yield server


def span_of(collector: Collector, request_id: str) -> ReceivedSpan:
    """Waits for the span of a request."""

    def find() -> list[ReceivedSpan]:
        return [span for span in collector.requests() if span.attributes["sso.request_id"] == request_id]

    until(find)
    (span,) = find()
    return span


def test_request_span_has_method_route_status_and_statements(server: Server, collector: Collector) -> None:
    with server.client() as client:
        answer = client.post("/proxy/api/login", json={"login": "nobody-here", "password": PASSWORD})
    span = span_of(collector, answer.headers["X-Request-Id"])
    assert span.name == "POST /proxy/api/login"
    assert span.attributes["http.request.method"] == "POST"
    assert span.attributes["http.response.status_code"] == answer.status_code
    assert span.resource["service.name"] == "sso-test"
    assert span.resource["deployment.environment.name"] == "test"
    names = {child.name for child in collector.children(span)}
    assert {
        "accounts.login.rate_limit_store.ADMIT",
        "accounts.login.rate_limit_store.CHARGE",
    } <= names  # a batch, and a statement


def test_request_id_and_trace_id_are_in_the_log(server: Server, collector: Collector) -> None:
    with server.client() as client:
        for path in ("/proxy/oauth/keys", "/healthz"):  # a prebuilt response and a route
            request_id = client.get(path).headers["X-Request-Id"]
            trace_id = span_of(collector, request_id).trace_id
            (entry,) = [e for e in server.log_events("request.answered") if e["request"] == request_id]
            assert (entry["route"], entry["trace"]) == (path, trace_id)


def test_mail_is_logged_with_the_request_and_the_trace_that_queued_it(server: Server, collector: Collector) -> None:
    login = new_user(server, email_2fa=True)
    with Browser(server) as browser:
        request_id = browser.sign_in(login).headers["X-Request-Id"]

    def find() -> list[dict[str, Any]]:
        return [entry for entry in server.log_events("mail.written") if entry.get("request") == request_id]

    until(find)
    (entry,) = find()
    assert (entry["trace"], entry["task"]) == (span_of(collector, request_id).trace_id, "mail")


def test_secrets_are_not_exported(server: Server, collector: Collector) -> None:
    """A login of a site and one of a game, with each secret that a request or a response of theirs contains."""
    site, browser = new_site(server), new_browser(server)
    code = browser.sign_in().code(site, state="secret-state")
    tokens = site.redeem(code).json()
    refreshed = site.refresh(tokens["refresh_token"]).json()
    last = site.userinfo(refreshed["access_token"])
    with Game(server) as game:
        session = game.register()
        session.close()
    with server.client() as client:
        login = {"login": browser.login, "password": PASSWORD, "code": "secret-code"}
        client.post("/proxy/api/login?x=secret-query", json=login, headers={"X-Header": "secret-header"})
        missing = client.get("/secret-path", headers={"Authorization": "Bearer secret-bearer", "Cookie": "secret=1"})
    span_of(collector, last.headers["X-Request-Id"])
    assert span_of(collector, missing.headers["X-Request-Id"]).name == "GET -"
    secrets = {
        *(code, site.secret, site.client_id, session.gsid, session.secret, browser.login, PASSWORD, "secret"),
        *(value for answer in (tokens, refreshed) for name, value in answer.items() if name.endswith("_token")),
        *browser.http.cookies.values(),
    }
    assert len(secrets) > 12
    exported = b"".join(collector.bodies)
    assert [secret for secret in secrets if secret and secret.encode() in exported] == []


@pytest.mark.parametrize("address", [TRUSTED, UNTRUSTED])
def test_traceparent_is_accepted_from_trusted_proxies_only(server: Server, collector: Collector, address: str) -> None:
    with Game(server, address) as game:
        paths = ("/readyz", "/proxy/oauth/keys")
        answers = [game.http.get(path, headers={"traceparent": TRACEPARENT}) for path in paths]
    for answer in answers:
        span = span_of(collector, answer.headers["X-Request-Id"])
        assert ((span.trace_id, span.parent_id) == (TRACE, PARENT)) == (address == TRUSTED)


def test_malformed_traceparent_starts_a_new_trace(server: Server, collector: Collector) -> None:
    with Game(server, TRUSTED) as game:
        values = ("", "x", f"00-{'0' * 32}-{PARENT}-01", TRACEPARENT + "\xff")
        answers = [game.http.get("/healthz", headers=[(b"traceparent", value.encode("latin-1"))]) for value in values]
    assert {answer.status_code for answer in answers} == {200}
    assert {span_of(collector, answer.headers["X-Request-Id"]).parent_id for answer in answers} == {""}


def test_trusted_caller_decides_about_sampling(server: Server, collector: Collector) -> None:
    with Game(server, TRUSTED) as game:
        unsampled = game.http.get("/healthz", headers={"traceparent": TRACEPARENT[:-2] + "00"})
        sampled = game.http.get("/healthz")
    span_of(collector, sampled.headers["X-Request-Id"])
    assert unsampled.headers["X-Request-Id"] not in [s.attributes["sso.request_id"] for s in collector.requests()]
    (entry,) = [e for e in server.log_events("request.answered") if e["request"] == unsampled.headers["X-Request-Id"]]
    assert entry["trace"] == TRACE


def test_both_workers_export_metrics(server: Server, collector: Collector) -> None:
    def instances() -> set[str]:
        return {metric.resource["service.instance.id"] for metric in collector.values("sso.sockets")}

    assert until(lambda: len(instances()) == 2)
    assert {metric.value for metric in collector.values("sso.database_circuit_open")} == {0}


def test_request_durations_and_batch_sizes_are_exported(server: Server, collector: Collector) -> None:
    with server.client() as client:
        client.get("/readyz")
        client.post("/proxy/api/login", json={"login": "nobody-here", "password": PASSWORD})

    def recorded() -> bool:
        durations = collector.values("http.server.request.duration")
        batches = collector.values("sso.database.batch_size")
        return any(
            metric.attributes
            == {"http.request.method": "GET", "http.route": "/readyz", "http.response.status_code": 200}
            for metric in durations
        ) and any(
            metric.attributes == {"db.operation.name": "accounts.login.rate_limit_store.ADMIT"} for metric in batches
        )

    assert until(recorded)


def test_headers_of_the_setting_are_sent(server: Server, collector: Collector) -> None:
    assert until(lambda: collector.headers)
    assert {(h["authorization"], h["x-team"]) for h in collector.headers} == {("Bearer abc", "sso")}


def test_held_poll_is_counted_and_its_span_ends_when_the_client_disconnects(
    server: Server, collector: Collector
) -> None:
    with Game(server) as game:
        session = game.register()
        body = b'{"gsid":"%b"}' % session.gsid.encode()
        head = f"POST /proxy/api/gameSession/getGsidResult HTTP/1.1\r\nHost: {server.base_url[7:]}\r\n"
        host, _, port = server.base_url.removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port)), source_address=(game.address, 0)) as poll:
            poll.sendall(f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
            assert until(lambda: any(metric.value == 1 for metric in collector.values("sso.held_polls")))

    def abandoned() -> list[ReceivedSpan]:
        return [s for s in collector.requests() if s.attributes.get("error.type") == "client_disconnected"]

    (span,) = until(abandoned)
    assert span.name == "POST /proxy/api/gameSession/getGsidResult"
    assert "http.response.status_code" not in span.attributes
    assert "gsid.poll_store.START" in {child.name for child in collector.children(span)}


def test_spans_are_flushed_when_a_worker_drains(
    postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory
) -> None:
    settings = QUICK | {"SSO_DATABASE_URL": postgres_server.fresh()}
    with running_collector() as collector:
        server = Server(tmp_path_factory.mktemp("drained"), settings | {"SSO_OTLP_ENDPOINT": collector.endpoint})
        server.start()
        try:
            with server.client() as client:
                request_id = client.get("/healthz").headers["X-Request-Id"]
        finally:
            assert server.stop(signal.SIGTERM) == 0
        assert request_id in [span.attributes["sso.request_id"] for span in collector.requests()]
        assert collector.values("http.server.request.duration")


@pytest.mark.parametrize("trusted", [True, False])
async def test_certificate_of_the_collector_is_verified_with_the_ca_file(tmp_path: Path, trusted: bool) -> None:
    certificate = make_certificate(tmp_path / "ca")
    other = make_certificate(tmp_path / "other")
    with running_collector(certificate=certificate) as collector, capture_logs() as logs:
        ca_file = (certificate if trusted else other).ca_file
        async with open_export(ExportOptions(collector.endpoint, interval_s=0.1, ca_file=ca_file)) as export:
            export.telemetry.start_request("GET", "/healthz", "0123456789abcdef").answered(200)
            await until_true(lambda: bool(collector.requests() or logs))
    assert bool(collector.requests()) == trusted
    assert [entry["reason"] for entry in logs] == ([] if trusted else ["SSLError"])


def test_missing_packages_are_reported_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "opentelemetry").mkdir()
    (tmp_path / "opentelemetry" / "__init__.py").touch()  # hides the installed packages
    settings = {"SSO_OTLP_ENDPOINT": "http://127.0.0.1:4318", "SSO_DATA_DIR": str(tmp_path / "data")}
    done = subprocess.run(
        [sys.executable, "-m", "sso", "serve"],
        env=clean_environment(**settings, PYTHONPATH=str(tmp_path), SSO_BIND="127.0.0.1:0"),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.endswith("-py3-none-any.whl[otel]'")
    assert "SSO_OTLP_ENDPOINT: the package opentelemetry." in line
    assert not (tmp_path / "data").exists()
