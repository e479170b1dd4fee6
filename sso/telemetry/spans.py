"""The interface between the code that is traced and the exporter of traces and metrics (``otel``).

Without an exporter, ``Telemetry | None`` is None everywhere, and a check for it is all that a request costs.
"""

from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Protocol


class Span(Protocol):
    """The span of a request or a statement. Only the first call of a method that ends it has an effect."""

    trace_id: str  # 32 hexadecimal digits

    def abandoned(self) -> None:
        """Ends the span of a request that got no response, because its client disconnected."""


class RequestSpan(Span, Protocol):
    def answered(self, status: int) -> None:
        """Ends the span with the status of the response."""

    def closed(self, code: int | None) -> None:
        """Ends the span of a WebSocket with the close code of the server, or None if the server did not close it."""


class Telemetry(Protocol):
    def start_request(
        self, method: str, route: str, request_id: str, traceparent: str = "", tracestate: str = ""
    ) -> RequestSpan:
        """Starts the span of a request. ``traceparent`` and ``tracestate`` are the headers of a trusted caller."""

    def statement(self, name: str) -> AbstractContextManager[object]:
        """Returns a span for a statement, a batched call or a transaction: a child of the current span.

        Nothing is recorded without a current span, as in background tasks.
        """

    def record_batch(self, name: str, items: int) -> None:
        """Counts the items of a batch."""


current_span: ContextVar[Span | None] = ContextVar("current_span", default=None)
