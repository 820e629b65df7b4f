"""Errors of Trello: a status and a line of plain text."""

from __future__ import annotations

from typing import Final

INVALID_ID: Final = "invalid id"
NOT_FOUND: Final = "The requested resource was not found."
NO_PERMISSION: Final = "unauthorized permission requested"


class ApiError(Exception):
    """A call that Trello rejects with a status and a text."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status} {text}")
        self.status = status
        self.text = text


def not_found() -> ApiError:
    """Return the error for a missing resource."""
    return ApiError(404, NOT_FOUND)


def invalid_value(name: str) -> ApiError:
    """Return the error for an invalid value."""
    return ApiError(400, f"invalid value for {name}")


def forbidden() -> ApiError:
    """Return the error for missing permissions."""
    return ApiError(401, NO_PERMISSION)
