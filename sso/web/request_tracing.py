"""Starts the span of a request.

The ``traceparent`` of a caller is used only if the operator says so and the caller is a trusted proxy. Otherwise any
client could add spans to the traces of others, and decide which of its requests are recorded.
"""

from typing import Any

from sso.core.net import Network, contains
from sso.telemetry.spans import RequestSpan, Telemetry, current_span
from sso.web.client_address import UnknownAddress, peer_address

SPAN = "sso.span"  # a key in the ASGI scope


class RequestTracing:
    def __init__(self, telemetry: Telemetry, callers: tuple[Network, ...] = ()) -> None:
        """``callers`` are the networks whose traces are continued."""
        self._telemetry = telemetry
        self._callers = callers

    def start(self, scope: Any, route: str, request_id: str) -> None:
        """Starts a span, which becomes the current span of this task."""
        parent, state = self._parent(scope)
        span = self._telemetry.start_request(scope.get("method", "GET"), route, request_id, parent, state)
        scope[SPAN] = span
        current_span.set(span)

    def _parent(self, scope: Any) -> tuple[str, str]:
        """Returns the values of ``traceparent`` and ``tracestate``, or empty strings."""
        if not self._callers:
            return "", ""
        headers = {name: value for name, value in scope["headers"] if name in (b"traceparent", b"tracestate")}
        if b"traceparent" not in headers or not self._is_trusted(scope.get("client")):
            return "", ""
        return headers[b"traceparent"].decode("latin-1"), headers.get(b"tracestate", b"").decode("latin-1")

    def _is_trusted(self, peer: Any) -> bool:
        try:
            return contains(self._callers, peer_address(peer[0] if peer else None))
        except UnknownAddress:
            return False


def started_span(scope: Any) -> RequestSpan | None:
    """Returns the span of the request with this scope, or None if requests are not traced."""
    span: RequestSpan | None = scope.get(SPAN)
    return span
