"""Shared state of the Trello bot."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from draftsman_bots.background import BackgroundTasks
from draftsman_bots.trello.health import BotHealth
from draftsman_bots.trello.identity import Identity
from draftsman_bots.trello.usecases.board_scans import BoardScans

if TYPE_CHECKING:
    from draftsman.runtime import Runtime
    from draftsman.settings import TrelloSettings
    from draftsman_bots.trello.transport.client import Trello


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
    scans: BoardScans = field(default_factory=BoardScans)
    _cards: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)

    def alone(self, card: str) -> asyncio.Lock:
        """Return the lock of a card, which webhook and poller share."""
        return self._cards.setdefault(card, asyncio.Lock())
