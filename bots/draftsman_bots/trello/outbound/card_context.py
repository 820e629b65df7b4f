"""What is to be known of a card's board before something is said or done there."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from draftsman.domain.job import TERMINAL
from draftsman.domain.messages.delivery import QUESTION_KINDS, DeliveryKind, Message
from draftsman.domain.messages.plain_text import render_plain
from draftsman.domain.trello.board import BoardConfig
from draftsman.errors import Failure
from draftsman_bots.trello.outbound.question_text import MemberNames
from draftsman_bots.trello.transport.client import Trello

MEMBERS_TTL: Final = 600.0
"""Seconds for which the members of a board are believed."""
CARD: Final = ("idBoard", "idList", "idLabels", "closed")


class BoardSource(Protocol):
    """Whoever knows the boards; `draftsman.services.trello_boards` does."""

    async def all(self) -> list[BoardConfig]:
        """Return the boards that are watched."""
        ...


@dataclass(frozen=True, slots=True)
class CardContext:
    """A card as it is now, the board it is on if that is watched, and who is there."""

    card: dict[str, Any] = field(default_factory=dict)
    config: BoardConfig | None = None
    names: MemberNames = field(default_factory=dict)

    @property
    def template(self) -> str | None:
        """The board's own words for results."""
        return None if self.config is None else self.config.comment_template


class CardContextLoader:
    """Looks at cards, no more often than what is to be said needs it."""

    def __init__(
        self, trello: Trello, boards: BoardSource | None, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._trello = trello
        self._boards = boards
        self._now = now
        self._members: dict[str, tuple[float, MemberNames]] = {}

    async def load(self, message: Message) -> CardContext:
        """Return what a message is said in; raises Failure."""
        watched = await self._boards.all() if self._boards is not None else []
        names = _names_somebody(message)
        if not names and not any(needs_context(config, message) for config in watched):
            return CardContext()
        card = await self._trello.get(f"/cards/{message.target}", fields=CARD)
        board = str(card.get("idBoard"))
        config = next((one for one in watched if one.board_id == board), None)
        return CardContext(card, config, await self._names(board) if names else {})

    async def _names(self, board: str) -> MemberNames:
        """Return the members of a board; without them people are named as we know them."""
        kept, known = self._members.get(board, (0.0, {}))
        if kept > self._now():
            return known
        try:
            found = await self._trello.get(f"/boards/{board}/members", fields=["username"])
        except Failure:
            return known
        known = _usernames(found)
        self._members = {
            board: (self._now() + MEMBERS_TTL, known),
            **_fresh(self._members, self._now()),
        }
        return known


def needs_context(config: BoardConfig, message: Message) -> bool:
    """Return whether a message makes a difference on a board: to its words or to its card."""
    status = message.subject.status
    if message.kind is DeliveryKind.RESULT:
        moved = status in config.moves or config.queued_label_id is not None
        return moved or config.comment_template is not None
    live = message.kind is DeliveryKind.STATUS and status not in TERMINAL
    return live and status in config.moves


def _names_somebody(message: Message) -> bool:
    if message.kind in QUESTION_KINDS and message.asked:
        return True
    return bool((message.payload or {}).get("to")) or "trello:" in render_plain(message)


def _usernames(found: Any) -> MemberNames:
    people: Sequence[Any] = found if isinstance(found, list) else []
    return {
        str(one["id"]): str(one["username"])
        for one in people
        if isinstance(one, dict) and one.get("id") and one.get("username")
    }


def _fresh(
    members: dict[str, tuple[float, MemberNames]], now: float
) -> dict[str, tuple[float, MemberNames]]:
    return {board: kept for board, kept in members.items() if kept[0] > now}
