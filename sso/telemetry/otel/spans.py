"""Spans of requests and statements. They contain names and numbers only: no path, no query, no parameter."""

from contextlib import AbstractContextManager, nullcontext
from contextvars import Token
from types import TracebackType

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.metrics import Histogram
from opentelemetry.trace import SpanKind, Status, StatusCode, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from sso.telemetry.metrics import METHODS
from sso.telemetry.spans import Span, current_span

_NO_SPAN = nullcontext()
_NO_PARENT = Context()
_W3C = TraceContextTextMapPropagator()
_SWITCHING_PROTOCOLS, _INTERNAL_ERROR = 101, 1011


class _RecordedSpan:
    __slots__ = ("context", "span", "trace_id")

    def __init__(self, span: trace.Span) -> None:
        self.span = span
        self.context = trace.set_span_in_context(span, _NO_PARENT)
        self.trace_id = trace.format_trace_id(span.get_span_context().trace_id)


class OtelRequestSpan(_RecordedSpan):
    __slots__ = ()

    def answered(self, status: int) -> None:
        if self.span.is_recording():  # not ended, and sampled
            self.span.set_attribute("http.response.status_code", status)
            if status >= 500:
                self.span.set_status(Status(StatusCode.ERROR))
                self.span.set_attribute("error.type", str(status))
            self.span.end()

    def closed(self, code: int | None) -> None:
        if self.span.is_recording():
            self.span.set_attribute("http.response.status_code", _SWITCHING_PROTOCOLS)
            if code is not None:
                self.span.set_attribute("sso.websocket.close_code", code)
            if code == _INTERNAL_ERROR:
                self.span.set_status(Status(StatusCode.ERROR))
                self.span.set_attribute("error.type", str(code))
            self.span.end()

    def abandoned(self) -> None:
        if self.span.is_recording():
            self.span.set_attribute("error.type", "client_disconnected")
            self.span.end()


class OtelStatementSpan(_RecordedSpan):
    """The current span while it is open, so that the statements of a transaction are its children."""

    __slots__ = ("_token",)
    _token: Token[Span | None]

    def __enter__(self) -> None:
        self._token = current_span.set(self)

    def __exit__(
        self, error_type: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        current_span.reset(self._token)
        if error_type is not None:
            self.span.set_status(Status(StatusCode.ERROR))
            self.span.set_attribute("error.type", error_type.__name__)  # its text may quote values
        self.span.end()

    def abandoned(self) -> None:
        self.span.end()


class OtelTelemetry:
    """Implements :class:`sso.telemetry.spans.Telemetry`."""

    def __init__(self, tracer: Tracer, batch_sizes: Histogram) -> None:
        self._tracer = tracer
        self._batch_sizes = batch_sizes

    def start_request(
        self, method: str, route: str, request_id: str, traceparent: str = "", tracestate: str = ""
    ) -> OtelRequestSpan:
        method = method if method in METHODS else "_OTHER"
        parent = (
            _W3C.extract({"traceparent": traceparent, "tracestate": tracestate}, _NO_PARENT)
            if traceparent
            else _NO_PARENT
        )
        attributes = {"http.request.method": method, "http.route": route, "sso.request_id": request_id}
        return OtelRequestSpan(
            self._tracer.start_span(f"{method} {route}", parent, kind=SpanKind.SERVER, attributes=attributes)
        )

    def statement(self, name: str) -> AbstractContextManager[object]:
        parent = current_span.get()
        if not isinstance(parent, _RecordedSpan) or not parent.span.is_recording():
            return _NO_SPAN
        attributes = {"db.system.name": "postgresql", "db.operation.name": name}
        return OtelStatementSpan(
            self._tracer.start_span(name, parent.context, kind=SpanKind.CLIENT, attributes=attributes)
        )

    def record_batch(self, name: str, items: int) -> None:
        self._batch_sizes.record(items, {"db.operation.name": name}, _NO_PARENT)
