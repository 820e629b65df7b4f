"""Entities of the fake: members, boards, cards, webhooks and requests."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]


@dataclass
class Member:
    """A person, or the integration's own account."""

    id: str
    name: str
    username: str


@dataclass
class Board:
    """A board; only its members see it."""

    id: str
    name: str
    link: str
    members: set[str] = field(default_factory=set)
    observers: set[str] = field(default_factory=set)
    """Members with read-only access."""
    closed: bool = False
    shorts: int = 0
    """Number of the last card."""


@dataclass
class List:
    """A list of a board."""

    id: str
    name: str
    board: str
    pos: float
    closed: bool = False


@dataclass
class Label:
    """A label of a board; names need be neither there nor unique."""

    id: str
    name: str
    color: str | None
    board: str


@dataclass(frozen=True)
class Attachment:
    """A file or URL attached to a card."""

    id: str
    name: str
    url: str
    member: str
    date: str
    data: bytes | None = None
    mime: str = ""


@dataclass
class Checklist:
    """A checklist of a card; its items are as in the REST answers."""

    id: str
    name: str
    card: str
    items: list[Json] = field(default_factory=list)


@dataclass
class Card:
    """A card."""

    id: str
    name: str
    desc: str
    board: str
    column: str
    """The list it is in."""
    short: int
    link: str
    pos: float
    labels: list[str] = field(default_factory=list)
    members: list[str] = field(default_factory=list)
    closed: bool = False
    activity: str = ""
    due: str | None = None
    due_complete: bool = False
    attachments: list[Attachment] = field(default_factory=list)
    checklists: list[Checklist] = field(default_factory=list)
    fields: dict[str, Json] = field(default_factory=dict)
    """Values of custom fields, by the id of the field."""


@dataclass(frozen=True)
class Comment:
    """A comment as people see it; `edited` is set if its text was changed."""

    id: str
    member: str
    text: str
    edited: bool
    date: str


@dataclass
class Webhook:
    """A webhook of a model."""

    id: str
    model: str
    url: str
    token: str
    description: str = ""
    active: bool = True
    failures: int = 0
    first_failure: str | None = None


@dataclass(frozen=True)
class Delivery:
    """A POST to a webhook, signed when it was written: its bytes never change."""

    webhook: str
    url: str
    body: bytes
    action: Json


@dataclass(frozen=True)
class Call:
    """A recorded request.

    `path` is the template of the route, `url` the requested URL, `by` the place of the key and the
    token (`header`, `query`, `body` or ""), `outcome` the status or the name of the fault.
    """

    method: str
    path: str
    url: str
    args: Json
    by: str
    outcome: str
