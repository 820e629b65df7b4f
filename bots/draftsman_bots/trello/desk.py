"""What everybody needs who works for Trello here."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from draftsman_bots.aside import Aside
from draftsman_bots.trello.board_scans import BoardScans
from draftsman_bots.trello.health import Health
from draftsman_bots.trello.identity import Identity

if TYPE_CHECKING:
    from draftsman.runtime import Runtime
    from draftsman.settings import TrelloSettings
    from draftsman_bots.trello.client import Trello


@dataclass(frozen=True)
class Desk:
    """The services, what is configured, and Trello itself."""

    rt: Runtime
    settings: TrelloSettings
    trello: Trello
    health: Health = field(default_factory=Health)
    me: Identity = field(default_factory=Identity)
    aside: Aside = field(default_factory=Aside)
    """What is done beside; whoever stops gives it a little time: `aside.close()`."""
    scans: BoardScans = field(default_factory=BoardScans)
    _cards: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)

    def alone(self, card: str) -> asyncio.Lock:
        """Return the lock of a card: webhook and poller take turns there."""
        return self._cards.setdefault(card, asyncio.Lock())
