"""Registry of REST calls: method, path template and handler."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final

from draftsman_testing.trello.api_errors import INVALID_ID, ApiError, forbidden, invalid_value
from draftsman_testing.trello.entities import Board, Card, Json
from draftsman_testing.trello.webhook_delivery import WebhookDelivery
from draftsman_testing.trello.world import World, is_id

TOKENS: Final = ("{token}", "{filter}", "{field}", "{member}", "{file}")
"""Parts of a path that are not ids."""


@dataclass
class File:
    """A file that was uploaded."""

    name: str
    data: bytes
    mime: str


@dataclass
class ApiCall:
    """A call: its member, the parts of the path by name, and the arguments."""

    world: World
    webhook_delivery: WebhookDelivery
    by: str
    parts: dict[str, str]
    args: Json
    most: int
    """Bytes of the largest attachment."""
    files: dict[str, File] = field(default_factory=dict)
    auth: str = ""
    """Place of the key and the token: `header`, `query` or `body`."""

    def text(self, name: str, default: str = "") -> str:
        """Return an argument as text."""
        value = self.args.get(name)
        return default if value is None else str(value)

    def need(self, name: str) -> str:
        """Return an argument that must be there."""
        value = self.args.get(name)
        if value in (None, ""):
            raise invalid_value(name)
        return str(value)

    def flag(self, name: str, default: bool = False) -> bool:
        """Return an argument that is true or false."""
        value = str(self.args.get(name, default)).lower()
        if value not in ("true", "false", "1", "0"):
            raise invalid_value(name)
        return value in ("true", "1")

    def ids(self, name: str) -> list[str]:
        """Return a list of ids, which comes with commas or as JSON."""
        value = self.args.get(name)
        items = value if isinstance(value, list) else str(value or "").split(",")
        return [str(item) for item in items if item]

    def card(self) -> Card:
        """Return the card of the path if the caller may see it."""
        card = self.world.card(self.parts["id"])
        self.may_see(card.board)
        return card

    def board(self) -> Board:
        """Return the board of the path if the caller may see it."""
        board = self.world.board(self.parts["id"])
        self.may_see(board.id)
        return board

    def may_see(self, board: str) -> None:
        """Raise ApiError unless the member may see the board."""
        if self.by not in self.world.boards[board].members:
            raise forbidden()


Work = Callable[[ApiCall], Any | Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Route:
    """A call that is served."""

    method: str
    path: str
    work: Work

    def match(self, method: str, path: str) -> dict[str, str] | None:
        """Return the parts of a path, None for another route; a trailing slash is ignored."""
        pattern = self.path.strip("/").split("/")
        actual = path.strip("/").split("/")
        if method != self.method or len(pattern) != len(actual):
            return None
        parts = {}
        for name, value in zip(pattern, actual, strict=True):
            if name.startswith("{"):
                parts[name.strip("{}")] = value
            elif name != value:
                return None
        return parts

    def check(self, parts: dict[str, str]) -> None:
        """Raise ApiError for an invalid id, before the token is checked."""
        for name, value in parts.items():
            if f"{{{name}}}" in TOKENS or is_id(value):
                continue
            linked = self.path.startswith(("/cards/", "/boards/")) and name in ("id", "idCard")
            if not (linked and len(value) == 8 and value.isalnum()):
                raise ApiError(400, INVALID_ID)


ROUTES: Final[list[Route]] = []


def route(method: str, path: str) -> Callable[[Work], Work]:
    """Register a call. Of two that match, the first counts."""

    def register(work: Work) -> Work:
        ROUTES.append(Route(method, path, work))
        return work

    return register
