"""What everybody needs who works for Trello here."""

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
    """The services, what is configured, and Trello itself."""

    rt: Runtime
    settings: TrelloSettings
    trello: Trello
    health: BotHealth = field(default_factory=BotHealth)
    me: Identity = field(default_factory=Identity)
    background: BackgroundTasks = field(default_factory=BackgroundTasks)
    """What is done beside; whoever stops gives it a little time: `aside.close()`."""
    scans: BoardScans = field(default_factory=BoardScans)
    _cards: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)

    def alone(self, card: str) -> asyncio.Lock:
        """Return the lock of a card: webhook and poller take turns there."""
        return self._cards.setdefault(card, asyncio.Lock())
