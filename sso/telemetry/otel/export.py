"""Starts the export of this process, and ends it with what is still queued.

The library sends data with threads of its own, keeps a limited number of spans and drops what the collector does not
accept, so a collector that is slow or down delays no request. Must be used after the fork.
"""

import uuid
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import trio
from msgspec import field
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.metrics import CallbackOptions, Meter, Observation
from opentelemetry.sdk.metrics import AlwaysOffExemplarFilter, MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased

import sso
from sso.core.hidden_fields import RecordWithHiddenFields
from sso.telemetry.counters import DomainCounter
from sso.telemetry.metrics import BUCKETS, METHODS, RequestObserver, StatementObserver, WorkerGauge
from sso.telemetry.otel.export_report import ExportReport, ReportingMetricExporter, ReportingSpanExporter
from sso.telemetry.otel.spans import OtelTelemetry

EXPORT_S = 5.0  # how long one export may take, with its retries
FLUSH_S = 3.0  # how long the end of a worker waits for the last exports
MAX_QUEUED_SPANS, MAX_EXPORTED_SPANS = 8192, 512  # some 15 MiB
BATCH_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class OtelExport:
    """What a worker reports: spans through ``telemetry``, durations of requests, and gauges."""

    def __init__(self, tracers: TracerProvider, meters: MeterProvider) -> None:
        meter = meters.get_meter("sso")
        self._meter: Meter = meter
        batch_sizes = meter.create_histogram(
            "sso.database.batch_size",
            description="Items in a batched statement",
            explicit_bucket_boundaries_advisory=BATCH_SIZES,
        )
        self.telemetry = OtelTelemetry(tracers.get_tracer("sso"), batch_sizes)

    def request_observer(self) -> RequestObserver:
        seconds = self._meter.create_histogram(
            "http.server.request.duration",
            unit="s",
            description="Time to answer a request",
            explicit_bucket_boundaries_advisory=BUCKETS,
        )

        def observe(method: str, route: str, status: int, duration_s: float) -> None:
            attributes: dict[str, str | int] = {
                "http.request.method": method if method in METHODS else "_OTHER",
                "http.route": route,
                "http.response.status_code": status,
            }
            seconds.record(duration_s, attributes)

        return observe

    def slow_statement_observer(self) -> StatementObserver:
        statements = self._meter.create_counter(
            "sso.database.slow_statements", description="Statements that took at least SSO_SLOW_STATEMENT_MS"
        )
        return lambda name: statements.add(1, {"db.operation.name": name})

    def observe_gauges(self, gauges: Iterable[WorkerGauge]) -> None:
        def read(gauge: WorkerGauge, _: CallbackOptions) -> Iterable[Observation]:
            return [Observation(gauge.read())]

        for gauge in gauges:
            name = f"sso.{gauge.name}"
            self._meter.create_observable_gauge(name, [partial(read, gauge)], description=gauge.description)

    def observe_counters(self, counters: Iterable[DomainCounter]) -> None:
        def read(counter: DomainCounter, _: CallbackOptions) -> Iterable[Observation]:
            # A copy: this runs in a thread of the exporter.
            for values, count in list(counter.counts.items()):
                yield Observation(count, dict(zip(counter.labels, values, strict=True)))

        for counter in counters:
            name = f"sso.{counter.name}"
            self._meter.create_observable_counter(name, [partial(read, counter)], description=counter.description)


class ExportOptions(RecordWithHiddenFields, frozen=True):
    hidden_fields = frozenset({"headers"})

    endpoint: str
    headers: dict[str, str] = field(default_factory=dict)
    sample_percent: int = 100
    interval_s: float = 5
    ca_file: Path | None = None


@asynccontextmanager
async def open_export(options: ExportOptions) -> AsyncIterator[OtelExport]:
    """Sends traces and metrics every ``interval_s`` seconds, and once more at the end."""
    report = ExportReport(options.endpoint)
    transport: dict[str, Any] = {"headers": options.headers, "timeout": EXPORT_S, "compression": Compression.Gzip}
    if options.ca_file:
        transport["certificate_file"] = str(options.ca_file)
    common: dict[str, Any] = {"resource": _resource(), "shutdown_on_exit": False}
    interval_ms, timeout_ms = options.interval_s * 1000, EXPORT_S * 1000
    tracers = TracerProvider(ParentBased(TraceIdRatioBased(options.sample_percent / 100)), **common)
    spans = ReportingSpanExporter(report, f"{options.endpoint}/v1/traces", **transport)
    tracers.add_span_processor(BatchSpanProcessor(spans, MAX_QUEUED_SPANS, interval_ms, MAX_EXPORTED_SPANS, timeout_ms))
    metrics = ReportingMetricExporter(report, f"{options.endpoint}/v1/metrics", **transport)
    reader = PeriodicExportingMetricReader(metrics, interval_ms, timeout_ms)
    meters = MeterProvider([reader], exemplar_filter=AlwaysOffExemplarFilter(), **common)
    try:
        yield OtelExport(tracers, meters)
    finally:
        with trio.move_on_after(FLUSH_S, shield=True):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_shut_down, tracers)
                nursery.start_soon(_shut_down, meters)


def _resource() -> Resource:
    """The attributes of this worker. OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES take precedence."""
    own = {"service.name": "sso", "service.version": sso.__version__, "service.instance.id": str(uuid.uuid4())}
    return Resource.create(own).merge(OTELResourceDetector().detect())


async def _shut_down(provider: TracerProvider | MeterProvider) -> None:
    """Sends what is queued. The thread of an export that hangs is left behind; it does not keep the process alive."""
    with suppress(Exception):  # the library raises if its own time limit has passed
        await trio.to_thread.run_sync(provider.shutdown, abandon_on_cancel=True)
