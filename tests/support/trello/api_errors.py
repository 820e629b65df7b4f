"""How Trello says no: a status and a line of plain text."""

from __future__ import annotations

from typing import Final

INVALID_ID: Final = "invalid id"
NOT_FOUND: Final = "The requested resource was not found."
NO_PERMISSION: Final = "unauthorized permission requested"


class ApiError(Exception):
    """A call that Trello refuses with this status and this text."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status} {text}")
        self.status = status
        self.text = text


def not_found() -> ApiError:
    """Refuse what names something that is not there."""
    return ApiError(404, NOT_FOUND)


def invalid_value(name: str) -> ApiError:
    """Refuse a value."""
    return ApiError(400, f"invalid value for {name}")


def forbidden() -> ApiError:
    """Refuse what this member may not do."""
    return ApiError(401, NO_PERMISSION)
