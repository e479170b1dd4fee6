"""The trace of a caller is continued only if the operator has said so and the caller is a trusted proxy."""

from typing import Any

import pytest
from opentelemetry.metrics import NoOpMeter
from opentelemetry.sdk.trace import TracerProvider

from sso.core.net import parse_networks
from sso.telemetry.otel.spans import OtelTelemetry
from sso.telemetry.spans import current_span
from sso.web.request_tracing import RequestTracing, started_span

TRACE = "0af7651916cd43dd8448eb211c80319c"
PROXIES = parse_networks("10.0.0.0/8")


@pytest.fixture
def telemetry() -> OtelTelemetry:
    tracer = TracerProvider(shutdown_on_exit=False).get_tracer("test")
    return OtelTelemetry(tracer, NoOpMeter("test").create_histogram("test"))


def scope_from(address: str, *headers: tuple[bytes, bytes]) -> dict[str, Any]:
    parent = (b"traceparent", f"00-{TRACE}-b7ad6b7169203331-01".encode())
    return {"type": "http", "method": "GET", "client": (address, 4711), "headers": [parent, *headers]}


@pytest.mark.parametrize(
    ("callers", "address", "continued"),
    [
        (PROXIES, "10.1.2.3", True),
        (PROXIES, "192.0.2.1", False),
        ((), "10.1.2.3", False),
        ((), "127.0.0.1", False),
    ],
)
def test_trace_of_a_caller_is_continued_only_from_trusted_proxies(
    telemetry: OtelTelemetry, callers: Any, address: str, continued: bool
) -> None:
    scope = scope_from(address)
    RequestTracing(telemetry, callers).start(scope, "/healthz", "0123456789abcdef")
    span = started_span(scope)
    assert span is not None
    assert (span.trace_id == TRACE) == continued
    assert current_span.get() is span


def test_second_traceparent_and_long_tracestate_start_no_foreign_trace(telemetry: OtelTelemetry) -> None:
    """A header that is there twice, or a list of 33 states, is not valid, but must not fail the request."""
    states = (b"tracestate", b",".join(b"v%d=1" % number for number in range(33)))
    scope = scope_from("10.1.2.3", (b"traceparent", b"x"), states)
    RequestTracing(telemetry, PROXIES).start(scope, "/healthz", "0123456789abcdef")
    span = started_span(scope)
    assert span is not None
    assert span.trace_id != TRACE
