"""How the bot is: what is wrong with it now, and what it counts."""

from __future__ import annotations

import time
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

from draftsman_bots.health import HealthState


class BotHealth(HealthState):
    """The state of one bot process."""

    def __init__(self) -> None:
        super().__init__()
        self.registry = CollectorRegistry()
        self._heard: float | None = None
        self._polled: float | None = None
        self.polling = False
        """Whether it is this process that polls."""
        self._actions = Counter(
            "draftsman_trello_actions",
            "What Trello told: by way and kind, and what became of it.",
            ("way", "kind", "outcome"),
            registry=self.registry,
        )
        self._refused = Counter(
            "draftsman_trello_http_refused",
            "HTTP requests that were turned away before they were read as Trello's.",
            ("reason",),
            registry=self.registry,
        )
        self._polls = Counter(
            "draftsman_trello_polls",
            "Looks at boards, and how they ended.",
            ("outcome",),
            registry=self.registry,
        )
        wrong = Gauge("draftsman_trello_problems", "What is wrong now.", registry=self.registry)
        wrong.set_function(lambda: len(self.problems))

    def count_action(self, way: str, kind: str, outcome: str) -> None:
        """Count something that Trello told, by webhook or because it was asked."""
        if way == "webhook":
            self._heard = time.time()
        self._actions.labels(way, kind, outcome).inc()

    def count_rejected(self, reason: str, text: str) -> None:
        """Count a request that was turned away; a line says so at most once a minute."""
        self._refused.labels(reason).inc()
        self.rate_limited_warning(reason, f"HTTP request refused: {text}")

    def count_poll(self, outcome: str) -> None:
        """Count a look at a board."""
        self._polled = time.time()
        self._polls.labels(outcome).inc()

    def as_json(self) -> dict[str, Any]:
        """Return what `/readyz` shows."""
        return {
            "ready": self.ready,
            "problems": self.problems,
            "notes": self.notes,
            "polling": self.polling,
            "last_request_seconds_ago": _age(self._heard),
            "last_poll_seconds_ago": _age(self._polled),
        }

    def metrics(self) -> bytes:
        """Return what `/metrics` shows, in Prometheus' text format."""
        return generate_latest(self.registry)


def _age(then: float | None) -> float | None:
    return None if then is None else round(time.time() - then, 1)
