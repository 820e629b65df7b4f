"""Health and metrics of a process that receives webhooks: of forges or of pagers."""

from __future__ import annotations

from typing import Any

from prometheus_client import CollectorRegistry, Counter, generate_latest

from draftsman_bots.process.health import HealthState


class WebhookHealth(HealthState):
    """Health and metrics of the receipt of webhooks.

    `sender` is `forge` or `pager`; `label` is the second label of the counter of events, whose help
    is `text`.
    """

    def __init__(self, sender: str, label: str, text: str) -> None:
        super().__init__()
        self.registry = CollectorRegistry()
        self._received = Counter(
            f"draftsman_{sender}_events", text, (sender, label), registry=self.registry
        )
        self._rejected = Counter(
            f"draftsman_{sender}_http_rejected",
            "Webhooks rejected before they were parsed, by reason.",
            ("reason",),
            registry=self.registry,
        )

    def count(self, sender: str, label: str, events: int = 1) -> None:
        """Count events of a forge or pager, by its name in the configuration."""
        self._received.labels(sender, label).inc(events)

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
