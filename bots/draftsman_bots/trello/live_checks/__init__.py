"""Live checks of Trello, on a board of their own or in a list of a board that a person names."""

from __future__ import annotations

from typing import Final

from draftsman.deliveries.channels.live_check import LiveChecks
from draftsman_bots.trello.live_checks import cards, fields
from draftsman_bots.trello.live_checks.place import connect

LIVE_CHECKS: Final = LiveChecks(
    connect=connect, checks=(*cards.CHECKS, *fields.CHECKS), packages=("py-trello",)
)
