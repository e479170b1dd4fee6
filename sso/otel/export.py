"""Starts the export of this process, and ends it with what is still queued.

The library sends data with threads of its own and drops data that the collector does not accept, so a collector that is
slow or down delays no request. Must be used after the fork.
"""

import uuid
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import trio
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import CallbackOptions, Meter, Observation
from opentelemetry.sdk.metrics import AlwaysOffExemplarFilter, MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased

import sso
from sso.metrics import BUCKETS, METHODS, RequestObserver, WorkerGauge
from sso.otel.export_report import ExportReport, ReportingMetricExporter, ReportingSpanExporter
from sso.otel.spans import OtelTelemetry

INTERVAL_S = 5.0
EXPORT_S = 5.0  # how long one export may take, with its retries
FLUSH_S = 3.0  # how long the end of a worker waits for the last export
MAX_QUEUED_SPANS, MAX_EXPORTED_SPANS = 8192, 512
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

    def observe_gauges(self, gauges: Iterable[WorkerGauge]) -> None:
        def read(gauge: WorkerGauge, _: CallbackOptions) -> Iterable[Observation]:
            return [Observation(gauge.read())]

        for gauge in gauges:
            name = f"sso.{gauge.name}"
            self._meter.create_observable_gauge(name, [partial(read, gauge)], description=gauge.description)


@asynccontextmanager
async def open_export(endpoint: str, headers: dict[str, str], sample_percent: int) -> AsyncIterator[OtelExport]:
    report = ExportReport(endpoint)
    resource = Resource.create(
        {"service.name": "sso", "service.version": sso.__version__, "service.instance.id": str(uuid.uuid4())}
    )
    options: dict[str, Any] = {"headers": headers, "timeout": EXPORT_S, "compression": Compression.Gzip}
    tracers = TracerProvider(
        ParentBased(TraceIdRatioBased(sample_percent / 100)), resource=resource, shutdown_on_exit=False
    )
    spans = ReportingSpanExporter(OTLPSpanExporter(f"{endpoint}/v1/traces", **options), report)
    tracers.add_span_processor(
        BatchSpanProcessor(spans, MAX_QUEUED_SPANS, INTERVAL_S * 1000, MAX_EXPORTED_SPANS)  # sent by its thread
    )
    metrics = ReportingMetricExporter(OTLPMetricExporter(f"{endpoint}/v1/metrics", **options), report)
    reader = PeriodicExportingMetricReader(metrics, INTERVAL_S * 1000, EXPORT_S * 1000)
    meters = MeterProvider(
        [reader], resource=resource, shutdown_on_exit=False, exemplar_filter=AlwaysOffExemplarFilter()
    )

    def shut_down() -> None:
        tracers.shutdown()
        meters.shutdown()

    try:
        yield OtelExport(tracers, meters)
    finally:
        with trio.CancelScope(shield=True), trio.move_on_after(FLUSH_S):
            await trio.to_thread.run_sync(shut_down, abandon_on_cancel=True)
