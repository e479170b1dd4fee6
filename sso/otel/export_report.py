"""Logs when the collector stops accepting data and when it accepts data again, rather than each failed export."""

import logging
from collections.abc import Sequence
from threading import Lock
from typing import Any

import structlog
from opentelemetry.sdk.metrics.export import MetricExporter, MetricExportResult, MetricsData
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

log = structlog.get_logger()


class ExportReport:
    """The state of the exports of this worker. The exporters call it from their threads."""

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self._lock = Lock()
        self._failures = 0
        # The library logs each failure with its own loggers.
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)

    def record(self, *, success: bool) -> None:
        with self._lock:
            failures, self._failures = self._failures, 0 if success else self._failures + 1
        if success and failures:
            log.info("telemetry.export_resumed", endpoint=self._endpoint, failed_exports=failures)
        elif not success and not failures:
            log.warning("telemetry.export_failed", endpoint=self._endpoint)


class ReportingSpanExporter(SpanExporter):
    def __init__(self, exporter: SpanExporter, report: ExportReport) -> None:
        self._exporter = exporter
        self._report = report

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        try:
            result = self._exporter.export(spans)
        except Exception:
            result = SpanExportResult.FAILURE
        self._report.record(success=result is SpanExportResult.SUCCESS)
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()


class ReportingMetricExporter(MetricExporter):
    def __init__(self, exporter: MetricExporter, report: ExportReport) -> None:
        super().__init__(exporter._preferred_temporality, exporter._preferred_aggregation)
        self._exporter = exporter
        self._report = report

    def export(self, metrics_data: MetricsData, timeout_millis: float = 10_000, **options: Any) -> MetricExportResult:
        try:
            result = self._exporter.export(metrics_data, timeout_millis, **options)
        except Exception:
            result = MetricExportResult.FAILURE
        self._report.record(success=result is MetricExportResult.SUCCESS)
        return result

    def force_flush(self, timeout_millis: float = 10_000) -> bool:
        return self._exporter.force_flush(timeout_millis)

    def shutdown(self, timeout_millis: float = 30_000, **options: Any) -> None:
        self._exporter.shutdown(timeout_millis, **options)
