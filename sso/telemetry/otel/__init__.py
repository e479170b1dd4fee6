"""Exports traces and metrics with OpenTelemetry. Imported only if SSO_OTLP_ENDPOINT is set."""
