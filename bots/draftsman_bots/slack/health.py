"""How the bot is: what is wrong with it now, and what it counts.

Being alive and being ready are two things: a bot whose Socket Mode was switched off is alive, and a
restart mends nothing, so only readiness turns red and says what to do.
"""

from __future__ import annotations

import logging
import math
import time
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

ACK_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 2.5, 3.0)
"""Seconds; Slack waits for three."""
SELDOM: Final = 60.0
"""Seconds between two lines about the same thing that strangers can make happen."""
_log = logging.getLogger(__name__)


class Health:
    """The state of one bot process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._problems: dict[str, str] = {}
        self._notes: dict[str, str] = {}
        self._fades: dict[str, float] = {}
        """When notes are over by themselves, by the monotonic clock."""
        self._quiet: set[str] = set()
        self._said: dict[str, float] = {}
        self._last: float | None = None
        self._requests = Counter(
            "draftsman_slack_requests",
            "What Slack sent: by kind, and what became of it.",
            ("kind", "outcome"),
            registry=self.registry,
        )
        self._seconds = Histogram(
            "draftsman_slack_ack_seconds",
            "Seconds from the whole request to its answer.",
            ("kind",),
            buckets=ACK_BUCKETS,
            registry=self.registry,
        )
        self._refused = Counter(
            "draftsman_slack_http_refused",
            "HTTP requests that were turned away before they were read as Slack's.",
            ("reason",),
            registry=self.registry,
        )
        self._retries = Counter(
            "draftsman_slack_retries", "Requests that Slack repeats.", registry=self.registry
        )
        self._sockets = Gauge(
            "draftsman_slack_sockets", "Open Socket Mode connections.", registry=self.registry
        )
        self._when = Gauge(
            "draftsman_slack_last_request_timestamp_seconds",
            "When Slack last sent something.",
            registry=self.registry,
        )
        wrong = Gauge("draftsman_slack_problems", "What is wrong now.", registry=self.registry)
        wrong.set_function(lambda: len(self._problems))

    def pending(self, key: str, text: str) -> None:
        """Be not ready until `clear`, as at every start: no line says so."""
        self._problems[key] = text
        self._quiet.add(key)

    def problem(self, key: str, text: str) -> None:
        """Turn red until `clear`; a line says so once."""
        if self._problems.get(key) != text or key in self._quiet:
            _log.error("%s", text)
        self._problems[key] = text
        self._quiet.discard(key)

    def note(self, key: str, text: str, seconds: float = math.inf) -> None:
        """Show what people should know and what stops no work, for so long."""
        self._fades[key] = time.monotonic() + seconds
        if self._notes.get(key) != text:
            _log.warning("%s", text)
        self._notes[key] = text

    def clear(self, *keys: str) -> None:
        """Forget problems and notes that are over."""
        for key in keys:
            if text := self._problems.pop(key, None) or self._notes.pop(key, None):
                if key not in self._quiet:
                    _log.warning("over: %s", text)
                self._quiet.discard(key)

    def answered(self, kind: str, outcome: str, seconds: float, *, retry: bool) -> None:
        """Count a request and its answer."""
        self._last = time.time()
        self._when.set(self._last)
        self._requests.labels(kind, outcome).inc()
        self._seconds.labels(kind).observe(seconds)
        if retry:
            self._retries.inc()

    def refused(self, reason: str, text: str) -> None:
        """Count a request that was turned away; a line says so at most once a minute."""
        self._refused.labels(reason).inc()
        now = time.monotonic()
        if now - self._said.get(reason, -SELDOM) >= SELDOM:
            self._said[reason] = now
            _log.warning("HTTP request refused: %s", text)

    def sockets(self, open_now: int) -> None:
        """Say how many connections there are."""
        self._sockets.set(open_now)

    @property
    def ready(self) -> bool:
        """Whether nothing is wrong."""
        return not self._problems

    def as_json(self) -> dict[str, Any]:
        """Return what `/readyz` shows."""
        age = None if self._last is None else round(time.time() - self._last, 1)
        now = time.monotonic()
        self.clear(*(key for key in list(self._notes) if self._fades[key] <= now))
        return {
            "ready": self.ready,
            "problems": dict(self._problems),
            "notes": dict(self._notes),
            "last_request_seconds_ago": age,
        }

    def metrics(self) -> bytes:
        """Return what `/metrics` shows, in Prometheus' text format."""
        return generate_latest(self.registry)
