"""Health and metrics of the Slack bot."""

from __future__ import annotations

import time
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from draftsman_bots.process.health import HealthState

ACK_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 2.5, 3.0)
"""Seconds; Slack's deadline is three."""


class BotHealth(HealthState):
    """Problems, notes and metrics of a bot process."""

    def __init__(self) -> None:
        super().__init__()
        self.registry = CollectorRegistry()
        self._last: float | None = None
        self._requests = Counter(
            "draftsman_slack_requests",
            "Requests from Slack, by kind and outcome: done, ignored, rejected, retry or error.",
            ("kind", "outcome"),
            registry=self.registry,
        )
        self._seconds = Histogram(
            "draftsman_slack_ack_seconds",
            "Seconds from the complete request to its acknowledgment.",
            ("kind",),
            buckets=ACK_BUCKETS,
            registry=self.registry,
        )
        self._rejected = Counter(
            "draftsman_slack_http_rejected",
            "HTTP requests rejected before they were parsed, by reason.",
            ("reason",),
            registry=self.registry,
        )
        self._retries = Counter(
            "draftsman_slack_retries", "Requests that Slack retried.", registry=self.registry
        )
        self._sockets = Gauge(
            "draftsman_slack_sockets",
            "Open Socket Mode connections; two when healthy.",
            registry=self.registry,
        )
        self._last_request_time = Gauge(
            "draftsman_slack_last_request_timestamp_seconds",
            "Unix time of the last request from Slack.",
            registry=self.registry,
        )
        self._counts: dict[tuple[str, str], tuple[Counter, Histogram]] = {}
        problems = Gauge(
            "draftsman_slack_problems",
            "Current problems, as /readyz shows them.",
            registry=self.registry,
        )
        problems.set_function(lambda: len(self.problems))

    def count_answer(self, kind: str, outcome: str, seconds: float, *, retry: bool) -> None:
        """Count a request and its acknowledgment."""
        self._last = time.monotonic()
        self._last_request_time.set_to_current_time()
        counts = self._counts.get((kind, outcome))
        if counts is None:  # a lookup of labels takes longer than a count
            counts = self._requests.labels(kind, outcome), self._seconds.labels(kind)
            self._counts[kind, outcome] = counts
        counts[0].inc()
        counts[1].observe(seconds)
        if retry:
            self._retries.inc()

    def count_rejected(self, reason: str, text: str) -> None:
        """Count a rejected request; logged at most once a minute."""
        self._rejected.labels(reason).inc()
        self.rate_limited_warning(reason, f"HTTP request rejected: {text}")

    def set_connections(self, open_now: int) -> None:
        """Set the number of open Socket Mode connections."""
        self._sockets.set(open_now)

    def as_json(self) -> dict[str, Any]:
        """Return the body of `/readyz`."""
        age = None if self._last is None else round(time.monotonic() - self._last, 1)
        return {
            "ready": self.ready,
            "problems": self.problems,
            "notes": self.notes,
            "last_request_seconds_ago": age,
        }

    def metrics(self) -> bytes:
        """Return the body of `/metrics`, in Prometheus' text format."""
        return generate_latest(self.registry)
