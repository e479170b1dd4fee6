"""A collector that refuses connections, hangs or answers with errors delays no request and no shutdown."""

import gc
import re
import time
import tracemalloc
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from sso.telemetry.otel import export
from sso.telemetry.otel.export import EXPORT_S, FLUSH_S, ExportOptions, open_export
from sso.telemetry.otel.spans import OtelTelemetry
from tests.kit.conditions import until_true
from tests.kit.otlp import hanging_collector, refusing_collector, running_collector
from tests.kit.postgres import Postgres
from tests.kit.server import QUICK, Server, until

LIBRARY_LIMIT_S = 30  # how long the library waits for its threads at the end if nothing limits it
REQUESTS = 5
QUEUED, EXPORTED, MAX_SPAN_BYTES = 256, 128, 4096


COLLECTORS: dict[str, Callable[[], AbstractContextManager[str]]] = {
    "ConnectionError": refusing_collector,
    "ReadTimeout": hanging_collector,
}


def traced_server(folder: Path, postgres_server: Postgres, endpoint: str) -> Server:
    settings = {"SSO_DATABASE_URL": postgres_server.fresh(), "SSO_OTLP_ENDPOINT": endpoint, "SSO_OTLP_INTERVAL_S": "1"}
    server = Server(folder, QUICK | settings)
    server.start()
    return server


def assert_no_request_waits_for_an_export(server: Server) -> None:
    began = time.monotonic()
    with server.client() as client:
        assert {client.get("/readyz").status_code for _ in range(REQUESTS)} == {200}
    assert time.monotonic() - began < REQUESTS * EXPORT_S


@pytest.mark.parametrize("reason", COLLECTORS)
def test_unreachable_collector_delays_neither_requests_nor_shutdown_and_is_logged_once(
    postgres_server: Postgres, tmp_path: Path, reason: str
) -> None:
    with COLLECTORS[reason]() as endpoint:
        server = traced_server(tmp_path, postgres_server, endpoint)
        try:
            assert until(lambda: server.log_events("telemetry.export_failed"), 60)
            assert_no_request_waits_for_an_export(server)
        finally:
            began = time.monotonic()
            assert server.stop() == 0
        assert time.monotonic() - began < LIBRARY_LIMIT_S - 5
    (line,) = server.log_events("telemetry.export_failed")
    assert (line["reason"], line["endpoint"], line["process"]) == (reason, endpoint, "worker-1")
    assert not re.search(r"opentelemetry|Traceback|library\.logged", server.log())


def test_collector_that_answers_500_delays_no_request_and_the_log_says_when_it_works_again(
    postgres_server: Postgres, tmp_path: Path
) -> None:
    with running_collector(status=500) as collector:
        server = traced_server(tmp_path, postgres_server, f"{collector.endpoint}/")
        try:
            (line,) = until(lambda: server.log_events("telemetry.export_failed"), 60)
            assert_no_request_waits_for_an_export(server)
            collector.status = 200
            assert until(lambda: server.log_events("telemetry.export_resumed"), 60)
        finally:
            assert server.stop() == 0
    assert line["reason"] == "500 Internal Server Error"
    assert server.log_events("telemetry.export_resumed")[0]["failed_exports"] >= 1


@pytest.mark.parametrize("status", [301, 401])
async def test_log_has_the_status_of_a_collector_that_accepts_nothing(status: int) -> None:
    with running_collector(status=status) as collector, capture_logs() as logs:
        async with open_export(ExportOptions(collector.endpoint, interval_s=0.1)) as opened:
            record_requests(opened.telemetry, 1)
            await until_true(lambda: bool(logs))
    (line,) = logs
    assert line["event"] == "telemetry.export_failed"
    assert line["reason"].startswith(f"{status} ")


def record_requests(telemetry: OtelTelemetry, count: int) -> int:
    """Records requests. Returns the memory in use afterwards."""
    for number in range(count):
        telemetry.start_request("GET", "/readyz", f"{number:016}").answered(200)
    gc.collect()  # a failed export leaves cycles, which hold its spans
    return tracemalloc.get_traced_memory()[0]  # 0 if it is not measured


async def test_spans_for_a_collector_that_hangs_take_limited_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "MAX_QUEUED_SPANS", QUEUED)
    monkeypatch.setattr(export, "MAX_EXPORTED_SPANS", EXPORTED)
    tracemalloc.start()
    try:
        with hanging_collector() as endpoint:
            async with open_export(ExportOptions(endpoint, interval_s=3600)) as opened:
                empty = tracemalloc.get_traced_memory()[0]
                full = record_requests(opened.telemetry, 8 * QUEUED)
                began = time.monotonic()
            assert time.monotonic() - began < FLUSH_S + 10
    finally:
        tracemalloc.stop()
    assert full - empty < 2 * QUEUED * MAX_SPAN_BYTES  # those in the queue, and those that are being sent
