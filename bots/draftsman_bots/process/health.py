"""Problems and notes of a bot.

Liveness and readiness differ: a bot whose account was disabled is alive, and a restart does not
help. Only readiness fails, and says how to fix the problem.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, generate_latest

from draftsman.database.readiness import Readiness

WARNING_INTERVAL: Final = 60.0
"""Seconds between two warnings for a reason that any client can trigger."""
_log = logging.getLogger(__name__)


class HealthState:
    """Current problems and notes of a bot."""

    def __init__(self) -> None:
        self._problems: dict[str, str] = {}
        self._notes: dict[str, str] = {}
        self._expires_at: dict[str, float] = {}
        """Expiry of each note, by the monotonic clock."""
        self._unlogged: set[str] = set()
        self._last_warnings: dict[str, float] = {}
        self.read_problems: Callable[[], Awaitable[Mapping[str, str]]] | None = None
        """Reads the problems of the database and the disk of this process."""

    async def look(self) -> None:
        """Look at the database and the disk, for who asks now."""
        if self.read_problems is not None:
            found = await self.read_problems()
            for key, text in found.items():
                self.problem(key, text)
            self.clear(*(key for key in Readiness.KEYS if key not in found))

    def pending(self, key: str, text: str) -> None:
        """Report not ready until `clear`, without a log line."""
        self._problems[key] = text
        self._unlogged.add(key)

    def problem(self, key: str, text: str) -> None:
        """Report not ready until `clear`; a change is logged once."""
        if self._problems.get(key) != text or key in self._unlogged:
            _log.error("%s", text)
        self._problems[key] = text
        self._unlogged.discard(key)

    def note(self, key: str, text: str, seconds: float = math.inf) -> None:
        """Show a note that does not affect readiness, for `seconds`."""
        self._expires_at[key] = time.monotonic() + seconds
        if self._notes.get(key) != text:
            _log.warning("%s", text)
        self._notes[key] = text

    def info(self, key: str, text: str) -> None:
        """Show a permanent note, without a log line."""
        self._expires_at[key] = math.inf
        self._notes[key] = text
        self._unlogged.add(key)

    def clear(self, *keys: str) -> None:
        """Remove problems and notes."""
        for key in keys:
            if text := self._problems.pop(key, None) or self._notes.pop(key, None):
                if key not in self._unlogged:
                    _log.warning("resolved: %s", text)
                self._unlogged.discard(key)

    def rate_limited_warning(self, reason: str, text: str) -> None:
        """Log a warning, at most once a minute for each reason."""
        now = time.monotonic()
        if now - self._last_warnings.get(reason, -WARNING_INTERVAL) >= WARNING_INTERVAL:
            self._last_warnings[reason] = now
            _log.warning("%s", text)

    @property
    def ready(self) -> bool:
        """Whether there is no problem."""
        return not self._problems

    @property
    def problems(self) -> dict[str, str]:
        """The texts of the current problems, by key."""
        return dict(self._problems)

    @property
    def notes(self) -> dict[str, str]:
        """The texts of the current notes, by key."""
        now = time.monotonic()
        self.clear(*(key for key in list(self._notes) if self._expires_at[key] <= now))
        return dict(self._notes)


# Health and metrics of a process that receives webhooks: of forges or of pagers.


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
