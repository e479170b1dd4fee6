"""OTLP/HTTP collectors: one that keeps what it receives, and one that never answers."""

import gzip
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.kit.smtp import Certificate


@dataclass(frozen=True)
class ReceivedSpan:
    name: str
    trace_id: str
    span_id: str
    parent_id: str
    is_error: bool
    attributes: dict[str, Any]
    resource: dict[str, Any]


@dataclass(frozen=True)
class ReceivedMetric:
    name: str
    value: float  # of a gauge, or the count of a histogram
    attributes: dict[str, Any]
    resource: dict[str, Any]


@dataclass
class Collector:
    port: int = 0
    spans: list[ReceivedSpan] = field(default_factory=list)
    metrics: list[ReceivedMetric] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    status: int = 200  # of its responses
    scheme: str = "http"

    @property
    def endpoint(self) -> str:
        return f"{self.scheme}://localhost:{self.port}"

    def requests(self) -> list[ReceivedSpan]:
        """The spans of requests."""
        return [span for span in list(self.spans) if "http.route" in span.attributes]

    def children(self, parent: ReceivedSpan) -> list[ReceivedSpan]:
        return [
            span for span in list(self.spans) if (span.trace_id, span.parent_id) == (parent.trace_id, parent.span_id)
        ]

    def values(self, name: str) -> list[ReceivedMetric]:
        return [metric for metric in list(self.metrics) if metric.name == name]

    def receive(self, path: str, body: bytes) -> None:
        self.bodies.append(body)
        if path == "/v1/traces":
            self._receive_traces(ExportTraceServiceRequest.FromString(body))
        elif path == "/v1/metrics":
            self._receive_metrics(ExportMetricsServiceRequest.FromString(body))

    def _receive_traces(self, request: ExportTraceServiceRequest) -> None:
        for part in request.resource_spans:
            resource = _attributes(part.resource.attributes)
            for span in (span for scope in part.scope_spans for span in scope.spans):
                ids = span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex()
                is_error = span.status.code == 2
                self.spans.append(ReceivedSpan(span.name, *ids, is_error, _attributes(span.attributes), resource))

    def _receive_metrics(self, request: ExportMetricsServiceRequest) -> None:
        for part in request.resource_metrics:
            resource = _attributes(part.resource.attributes)
            for metric in (metric for scope in part.scope_metrics for metric in scope.metrics):
                for number in metric.gauge.data_points:
                    value = number.as_int if number.HasField("as_int") else number.as_double
                    self.metrics.append(ReceivedMetric(metric.name, value, _attributes(number.attributes), resource))
                for point in metric.histogram.data_points:
                    self.metrics.append(
                        ReceivedMetric(metric.name, point.count, _attributes(point.attributes), resource)
                    )


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}


@contextmanager
def running_collector(status: int = 200, certificate: Certificate | None = None) -> Iterator[Collector]:
    collector = Collector(status=status, scheme="https" if certificate else "http")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            collector.headers.append({name.lower(): value for name, value in self.headers.items()})
            collector.receive(self.path, body)
            self.send_response(collector.status)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as server:
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate.chain_file)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        collector.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield collector
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def hanging_collector() -> Iterator[str]:
    """Yields the address of a collector that accepts connections and never answers."""
    connections: list[socket.socket] = []

    def accept(listener: socket.socket) -> None:
        while True:
            try:
                connections.append(listener.accept()[0])
            except OSError:  # closed below
                return

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=accept, args=(listener,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
            for connection in connections:
                connection.close()


@contextmanager
def refusing_collector() -> Iterator[str]:
    """Yields an address at which every connection is refused, as its port belongs to a socket that does not listen."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{reserved.getsockname()[1]}"
