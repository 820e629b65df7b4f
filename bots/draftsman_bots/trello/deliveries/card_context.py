"""Loads the card, board and members that a message is rendered for."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from draftsman.deliveries.delivery import QUESTION_KINDS, DeliveryKind, Message
from draftsman.errors import Failure
from draftsman.jobs.job import TERMINAL
from draftsman.jobs.retries import ErrorClass, classify
from draftsman_bots.trello.deliveries.checklists import uses_checklist
from draftsman_bots.trello.deliveries.field_values import shows_fields
from draftsman_bots.trello.deliveries.member_names import MemberNames, names_members
from draftsman_bots.trello.records.board import BoardConfig
from draftsman_bots.trello.transport.cards import CustomField, fetch_fields, read_card
from draftsman_bots.trello.transport.client import Trello

if TYPE_CHECKING:
    from trello import Card

MEMBERS_TTL: Final = 600.0
"""Seconds for which the members and custom fields of a board are cached."""


class BoardSource(Protocol):
    """Source of board configurations, as `draftsman_bots.trello.records.service`."""

    async def all(self) -> list[BoardConfig]:
        """Return the watched boards."""
        ...


@dataclass(frozen=True, slots=True)
class CardContext:
    """A card, the configuration of its watched board, and the members and fields there."""

    card: Card | None = None
    config: BoardConfig | None = None
    names: MemberNames = field(default_factory=dict)
    fields: Sequence[CustomField] = ()

    @property
    def template(self) -> str | None:
        """The board's template for results."""
        return None if self.config is None else self.config.comment_template


class CardContextLoader:
    """Loads the context of a card only for messages that need it."""

    def __init__(
        self, trello: Trello, boards: BoardSource | None, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._trello = trello
        self._boards = boards
        self._now = now
        self._members: dict[str, tuple[float, MemberNames]] = {}
        self._fields: dict[str, tuple[float, Sequence[CustomField]]] = {}

    async def load(self, message: Message) -> CardContext:
        """Return the context of a message; raises Failure."""
        watched = await self._boards.all() if self._boards is not None else []
        names = _mentions_member(message)
        if not names and not any(needs_context(config, message) for config in watched):
            return CardContext()
        card = await read_card(self._trello, message.target)
        config = next((config for config in watched if config.board_id == card.idBoard), None)
        fields: Sequence[CustomField] = ()
        if config is not None and shows_fields(config, message):
            fields = await self._custom_fields(card.idBoard)
        return CardContext(card, config, await self._names(card.idBoard) if names else {}, fields)

    async def _custom_fields(self, board: str) -> Sequence[CustomField]:
        """Return the custom fields of a board; none while its Power-Up is off."""
        expires_at, fields = self._fields.get(board, (0.0, ()))
        if expires_at > self._now():
            return fields
        try:
            fields = await fetch_fields(self._trello, board)
        except Failure as error:
            if classify(error) is not ErrorClass.PERMANENT:
                raise
            fields = ()
        self._fields[board] = (self._now() + MEMBERS_TTL, fields)
        return fields

    async def _names(self, board: str) -> MemberNames:
        """Return the members of a board; after a failure the cached members, or none."""
        expires_at, names = self._members.get(board, (0.0, {}))
        if expires_at > self._now():
            return names
        try:
            members = await self._trello.read(
                self._trello.board(board).get_members, {"fields": "username,fullName"}
            )
        except Failure:
            return names
        names = {member.id: member.username for member in members if member.username}
        self._members = {
            board: (self._now() + MEMBERS_TTL, names),
            **_fresh(self._members, self._now()),
        }
        return names


def needs_context(config: BoardConfig, message: Message) -> bool:
    """Return whether a board's configuration changes a message's text or moves its card."""
    status = message.subject.status
    if message.kind is DeliveryKind.NOTICE and (end := (message.payload or {}).get("pull_request")):
        return end in config.end_moves
    if message.kind is DeliveryKind.RESULT and not config.custom_fields:
        moved = status in config.moves or config.queued_label_id is not None
        return moved or config.comment_template is not None
    if message.kind in (DeliveryKind.QUESTION, DeliveryKind.QUESTION_CLOSED):
        return config.due_dates or uses_checklist(config, message.question)
    if message.kind is DeliveryKind.REMINDER:
        return uses_checklist(config, message.question)
    if shows_fields(config, message):
        return True
    live = message.kind is DeliveryKind.STATUS and status not in TERMINAL
    return live and status in config.moves


def _mentions_member(message: Message) -> bool:
    if message.kind in (*QUESTION_KINDS, DeliveryKind.DIGEST) and message.mentions:
        return True
    return bool((message.payload or {}).get("to")) or names_members(message)


def _fresh(
    members: dict[str, tuple[float, MemberNames]], now: float
) -> dict[str, tuple[float, MemberNames]]:
    return {board: entry for board, entry in members.items() if entry[0] > now}
