"""Logs when the collector stops accepting data and when it accepts data again, rather than each failed export."""

import logging
from collections.abc import Sequence
from threading import Lock
from typing import Any

import requests
import structlog
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics.export import MetricExportResult, MetricsData
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult


class ExportReport:
    """The state of the exports of this worker. The exporters call it from their threads."""

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        # Threads do not inherit the fields that all lines of this process have.
        self._log = structlog.get_logger().bind(**structlog.contextvars.get_contextvars())
        self._lock = Lock()
        self._failures = 0
        # The library logs each failure with its own loggers.
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)

    def record(self, *, success: bool, reason: str) -> None:
        with self._lock:
            failures, self._failures = self._failures, 0 if success else self._failures + 1
        if success and failures:
            self._log.info("telemetry.export_resumed", endpoint=self._endpoint, failed_exports=failures)
        elif not success and not failures:
            self._log.warning("telemetry.export_failed", endpoint=self._endpoint, reason=reason)


class CollectorSession(requests.Session):
    """Keeps the reason of the last failure, which the exporters do not return."""

    failure = ""

    def request(self, *arguments: Any, **options: Any) -> requests.Response:
        options["verify"] = self.verify  # otherwise REQUESTS_CA_BUNDLE takes precedence over the configured CA
        try:
            response = super().request(*arguments, **options)
        except requests.RequestException as error:
            self.failure = type(error).__name__  # its text quotes the address at length
            raise
        self.failure = f"{response.status_code} {response.reason}"
        if 300 <= response.status_code < 400:  # not followed; the exporter would take it for a success
            raise requests.TooManyRedirects(self.failure)
        return response


class ReportingSpanExporter(OTLPSpanExporter):
    def __init__(self, report: ExportReport, endpoint: str, **options: Any) -> None:
        self._report = report
        self._collector = CollectorSession()
        super().__init__(endpoint, session=self._collector, **options)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = super().export(spans)
        self._report.record(success=result is SpanExportResult.SUCCESS, reason=self._collector.failure)
        return result


class ReportingMetricExporter(OTLPMetricExporter):
    def __init__(self, report: ExportReport, endpoint: str, **options: Any) -> None:
        self._report = report
        self._collector = CollectorSession()
        super().__init__(endpoint, session=self._collector, **options)

    def export(
        self, metrics_data: MetricsData, timeout_millis: float | None = 10_000, **options: Any
    ) -> MetricExportResult:
        result = super().export(metrics_data, timeout_millis, **options)
        self._report.record(success=result is MetricExportResult.SUCCESS, reason=self._collector.failure)
        return result
