"""Shared state of the Trello bot."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

from draftsman_bots.conversation.attachments import AttachmentDownloads
from draftsman_bots.process.background import BackgroundTasks
from draftsman_bots.process.health import HealthState
from draftsman_bots.trello.transport.attachment_download import download_file

if TYPE_CHECKING:
    from draftsman.people.actor import Actor
    from draftsman.runtime import Runtime
    from draftsman_bots.trello.settings import TrelloSettings
    from draftsman_bots.trello.transport.client import Trello


# Health and metrics of the Trello bot.


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
            "Trello actions received, by source (webhook or poll), kind and outcome.",
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
            "Polls of boards, by outcome: done or failed.",
            ("outcome",),
            registry=self.registry,
        )
        problems = Gauge(
            "draftsman_trello_problems",
            "Current problems, as /readyz shows them.",
            registry=self.registry,
        )
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


Requested = dict[str, dict[str, "Actor"]]
"""Cards to look for, each with the people who put labels on it, as far as they are known."""


@dataclass(slots=True)
class Identity:
    """The bot's own member; empty until Trello returned it."""

    id: str = ""
    username: str = ""

    def __bool__(self) -> bool:
        return bool(self.id)


@dataclass(slots=True)
class ScanState:
    """Board scans requested and under way, by board; `started` has monotonic times."""

    requested: dict[str, Requested] = field(default_factory=dict)
    running: set[str] = field(default_factory=set)
    started: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class BotContext:
    """Services, settings, Trello client and bot state."""

    rt: Runtime
    settings: TrelloSettings
    trello: Trello
    health: BotHealth = field(default_factory=BotHealth)
    me: Identity = field(default_factory=Identity)
    background: BackgroundTasks = field(default_factory=BackgroundTasks)
    """Background tasks; `background.close()` waits for them at shutdown."""
    scans: ScanState = field(default_factory=ScanState)
    _cards: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)

    @cached_property
    def downloads(self) -> AttachmentDownloads:
        """Downloads of the files of cards; the service runs them."""
        download = partial(download_file, self.trello)
        return AttachmentDownloads(self.rt.attachments, "trello", download)

    def card_lock(self, card: str) -> asyncio.Lock:
        """Return the lock of a card, which webhook and poller share."""
        return self._cards.setdefault(card, asyncio.Lock())
