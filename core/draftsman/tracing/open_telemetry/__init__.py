"""Traces in OpenTelemetry, which only this package knows."""
