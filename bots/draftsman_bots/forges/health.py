"""Health and metrics of the receipt of forge events."""

from __future__ import annotations

from typing import Any

from prometheus_client import CollectorRegistry, Counter, generate_latest

from draftsman_bots.health import HealthState


class ForgeHealth(HealthState):
    """Health and metrics of the process that receives the events of forges."""

    def __init__(self) -> None:
        super().__init__()
        self.registry = CollectorRegistry()
        self._received = Counter(
            "draftsman_forge_events",
            "New events of forges, by forge and source.",
            ("forge", "source"),
            registry=self.registry,
        )
        self._rejected = Counter(
            "draftsman_forge_http_rejected",
            "Webhooks rejected before they were parsed, by reason.",
            ("reason",),
            registry=self.registry,
        )

    def count(self, forge: str, source: str, new: int) -> None:
        """Count new events."""
        self._received.labels(forge, source).inc(new)

    def count_rejected(self, reason: str, text: str) -> None:
        """Count a rejected request; log it at most once a minute for each reason."""
        self._rejected.labels(reason).inc()
        self.rate_limited_warning(reason, f"webhook rejected: {text}")

    def as_json(self) -> dict[str, Any]:
        """Return the body of `/readyz`."""
        return {"ready": self.ready, "problems": self.problems, "notes": self.notes}

    def metrics(self) -> bytes:
        """Return the body of `/metrics` in the Prometheus text format."""
        return generate_latest(self.registry)
