"""Health and metrics of the receipt of webhooks of pagers."""

from __future__ import annotations

from typing import Any

from prometheus_client import CollectorRegistry, Counter, generate_latest

from draftsman_bots.health import HealthState


class PagerHealth(HealthState):
    """Health and metrics of the process that receives the webhooks of pagers."""

    def __init__(self) -> None:
        super().__init__()
        self.registry = CollectorRegistry()
        self._received = Counter(
            "draftsman_pager_events",
            "Webhooks about alerts of questions, by pager and kind; repetitions count.",
            ("pager", "kind"),
            registry=self.registry,
        )
        self._rejected = Counter(
            "draftsman_pager_http_rejected",
            "Webhooks rejected before they were parsed, by reason.",
            ("reason",),
            registry=self.registry,
        )

    def count(self, pager: str, kind: str) -> None:
        """Count a webhook about the alert of a question."""
        self._received.labels(pager, kind).inc()

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
