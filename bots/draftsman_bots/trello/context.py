"""Shared state of the Trello bot."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from draftsman.jobs.job import Source
from draftsman_bots.conversation.attachments import AttachmentDownloads
from draftsman_bots.process.background import BackgroundTasks
from draftsman_bots.trello.health import BotHealth
from draftsman_bots.trello.transport.file_download import download_file

if TYPE_CHECKING:
    from draftsman.people.actor import Actor
    from draftsman.runtime import Runtime
    from draftsman.settings import TrelloSettings
    from draftsman_bots.trello.transport.client import Trello


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
        return AttachmentDownloads(self.rt.attachments, Source.TRELLO, download)

    def card_lock(self, card: str) -> asyncio.Lock:
        """Return the lock of a card, which webhook and poller share."""
        return self._cards.setdefault(card, asyncio.Lock())
