"""Health and metrics of the Trello bot."""

from __future__ import annotations

import time
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

from draftsman_bots.process.health import HealthState


class BotHealth(HealthState):
    """Health and metrics of a bot process."""

    def __init__(self) -> None:
        super().__init__()
        self.registry = CollectorRegistry()
        self._received_at: float | None = None
        self._polled_at: float | None = None
        self.polling = False
        """Whether this process holds the poller lease."""
        self._actions = Counter(
            "draftsman_trello_actions",
            "Trello actions received, by source, kind and outcome.",
            ("source", "kind", "outcome"),
            registry=self.registry,
        )
        self._rejected = Counter(
            "draftsman_trello_http_rejected",
            "HTTP requests rejected before they were parsed, by reason.",
            ("reason",),
            registry=self.registry,
        )
        self._polls = Counter(
            "draftsman_trello_polls",
            "Polls of boards, by outcome.",
            ("outcome",),
            registry=self.registry,
        )
        problems = Gauge("draftsman_trello_problems", "Current problems.", registry=self.registry)
        problems.set_function(lambda: len(self.problems))

    def count_action(self, source: str, kind: str, outcome: str) -> None:
        """Count an action received by webhook or poll."""
        if source == "webhook":
            self._received_at = time.monotonic()
        self._actions.labels(source, kind, outcome).inc()

    def count_rejected(self, reason: str, text: str) -> None:
        """Count a rejected request; log it at most once a minute for each reason."""
        self._rejected.labels(reason).inc()
        self.rate_limited_warning(reason, f"HTTP request rejected: {text}")

    def count_poll(self, outcome: str) -> None:
        """Count a poll of a board."""
        self._polled_at = time.monotonic()
        self._polls.labels(outcome).inc()

    def as_json(self) -> dict[str, Any]:
        """Return the body of `/readyz`."""
        return {
            "ready": self.ready,
            "problems": self.problems,
            "notes": self.notes,
            "polling": self.polling,
            "last_request_seconds_ago": _age(self._received_at),
            "last_poll_seconds_ago": _age(self._polled_at),
        }

    def metrics(self) -> bytes:
        """Return the body of `/metrics` in the Prometheus text format."""
        return generate_latest(self.registry)


def _age(then: float | None) -> float | None:
    return None if then is None else round(time.monotonic() - then, 1)
