"""State and clock of the fake Trello."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, TypeVar

from draftsman_testing.fake.server import ServerState
from draftsman_testing.trello.api_errors import INVALID_ID, ApiError, not_found
from draftsman_testing.trello.entities import (
    Board,
    Call,
    Card,
    Checklist,
    Delivery,
    Json,
    Label,
    List,
    Member,
    Webhook,
)

T = TypeVar("T")
LETTERS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


@dataclass
class World(ServerState[Call]):
    """State that `operations` change, `methods` return and webhooks deliver."""

    key: str = "0123456789abcdef0123456789abcdef"
    token: str = "ATTAfa4efa4efa4efa4efa4efa4efa4efa4efa4efa4efa4efa4efa4efa4efa4e"
    secret: str = "fa4e5ec2e7fa4e5ec2e7fa4e5ec2e7fa4e5ec2e7fa4e5ec2e7fa4e5ec2e7fa4e"
    revoked: bool = False
    """Whether the token is no longer valid."""
    writes: bool = True
    """Whether the token has the scope write."""
    label_actions: bool = False
    """Whether a card that is created with labels sends addLabelToCard too; unknown of Trello."""
    bot: str = ""
    someone: str = ""
    """The member who acts by default."""
    members: dict[str, Member] = field(default_factory=dict)
    boards: dict[str, Board] = field(default_factory=dict)
    lists: dict[str, List] = field(default_factory=dict)
    labels: dict[str, Label] = field(default_factory=dict)
    cards: dict[str, Card] = field(default_factory=dict)
    checklists: dict[str, Checklist] = field(default_factory=dict)
    custom_fields: dict[str, Json] = field(default_factory=dict)
    storage_url: str = ""
    """Where downloads are redirected to; empty: they are answered."""
    without_fields: set[str] = field(default_factory=set)
    """Boards whose Power-Up for custom fields is off."""
    actions: dict[str, Json] = field(default_factory=dict)
    """Every action that is not deleted, oldest first."""
    on_card: defaultdict[str, dict[str, Json]] = field(default_factory=lambda: defaultdict(dict))
    """The same, by card."""
    webhooks: dict[str, Webhook] = field(default_factory=dict)
    pending: list[Delivery] = field(default_factory=list)
    """Actions that are not delivered yet."""

    def id(self, created: float | None = None) -> str:
        """Return a new Mongo id: the second of its creation, by default now, and a number."""
        second = int(self.now() if created is None else created)
        return f"{second:08x}5eedfa4e00{next(self._ids):06x}"

    def link(self) -> str:
        """Return a new shortLink, which stands for an id."""
        number = next(self._ids) * 2654435761 % 62**8
        text = ""
        for _ in range(8):
            number, digit = divmod(number, 62)
            text += LETTERS[digit]
        return text

    def moment(self) -> float:
        """Return the time of something that happens now, later than all before it, in seconds."""
        self._last = max(self._last + 1, int(self.now() * 1000))
        return self._last / 1000

    def keep(self, action: Json) -> None:
        """Remember an action."""
        self.actions[action["id"]] = action
        if card := action["data"].get("card"):
            self.on_card[card["id"]][action["id"]] = action

    def forget(self, action: Json) -> None:
        """Drop an action."""
        del self.actions[action["id"]]
        del self.on_card[action["data"]["card"]["id"]][action["id"]]

    def card(self, ref: str) -> Card:
        """Return a card by its id or its shortLink."""
        return _by_link(self.cards, ref)

    def board(self, ref: str) -> Board:
        """Return a board by its id or its shortLink."""
        return _by_link(self.boards, ref)

    def member(self, ref: str) -> Member:
        """Return a member by id, user name or `me`."""
        id_or_name = self.bot if ref == "me" else ref
        for member in self.members.values():
            if id_or_name in (member.id, member.username):
                return member
        raise not_found()


def known(entities: Mapping[str, T], id: str) -> T:
    """Return the entity with this id; raises ApiError."""
    if not is_id(id):
        raise ApiError(400, INVALID_ID)
    if id not in entities:
        raise not_found()
    return entities[id]


def _by_link(entities: Mapping[str, T], ref: str) -> T:
    if ref in entities:
        return entities[ref]
    for entity in entities.values():
        if getattr(entity, "link", None) == ref:
            return entity
    return known(entities, ref)


def is_id(text: str) -> bool:
    """Return whether this has the format of a Mongo id."""
    return len(text) == 24 and all(letter in "0123456789abcdef" for letter in text)


def iso(seconds: float) -> str:
    """Return a date as Trello writes it, of milliseconds."""
    when = datetime.fromtimestamp(round(seconds * 1000) / 1000, UTC)
    return when.strftime("%Y-%m-%dT%H:%M:%S.") + f"{when.microsecond // 1000:03d}Z"
