"""How Trello says no: a status and a line of plain text."""

from __future__ import annotations

from typing import Final

INVALID_ID: Final = "invalid id"
NOT_FOUND: Final = "The requested resource was not found."
NO_PERMISSION: Final = "unauthorized permission requested"


class Refused(Exception):
    """A call that Trello refuses with this status and this text."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status} {text}")
        self.status = status
        self.text = text


def missing() -> Refused:
    """Refuse what names something that is not there."""
    return Refused(404, NOT_FOUND)


def wrong(name: str) -> Refused:
    """Refuse a value."""
    return Refused(400, f"invalid value for {name}")


def forbidden() -> Refused:
    """Refuse what this member may not do."""
    return Refused(401, NO_PERMISSION)
