"""Traces of jobs."""

from __future__ import annotations

import os
from typing import Annotated, Final

from pydantic import Field, StringConstraints

from draftsman.settings.section import Section

ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
"""Standard variables with the receiver of traces."""
EXPORTER: Final = "OTEL_TRACES_EXPORTER"
Endpoint = Annotated[str, StringConstraints(pattern=r"^https?://[^\s/?#]+[^\s?#]*$")]


class TracingSettings(Section):
    """Traces of jobs, for OpenTelemetry (docs/tracing.md). They need the extra otel."""

    endpoint: Endpoint | None = Field(None, examples=["http://localhost:4318"])
    """URL of the receiver (OTLP over HTTP), without /v1/traces. OTEL_EXPORTER_OTLP_ENDPOINT of the
    environment is used before it. Unset, and without that variable: no traces."""

    @property
    def is_on(self) -> bool:
        """Whether this process records traces; the standard variables decide before `endpoint`."""
        if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
            return False
        exporters = os.environ.get(EXPORTER, "").lower().replace(" ", "").split(",")
        if exporters != [""]:
            return "otlp" in exporters
        return self.endpoint is not None or _has_endpoint()

    @property
    def own_endpoint(self) -> str | None:
        """The receiver, unless a standard variable has it."""
        return None if _has_endpoint() else self.endpoint


def _has_endpoint() -> bool:
    return any(os.environ.get(name) for name in ENDPOINTS)
