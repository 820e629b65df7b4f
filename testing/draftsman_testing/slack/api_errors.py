"""Errors of the Web API: `{"ok": false, "error": …}` with HTTP 200."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class ApiError(Exception):
    """A rejected call.

    `error` is its code; `more` are further fields of the response.
    """

    def __init__(self, error: str, **more: Any) -> None:
        super().__init__(error)
        self.error = error
        self.more = more

    def body(self) -> dict[str, Any]:
        """Return the response body."""
        return {"ok": False, "error": self.error} | self.more


def invalid_arguments(error: str, problems: Sequence[str]) -> ApiError:
    """Return the error with its list of problems, in the two places where Slack puts it."""
    messages = [f"[ERROR] {problem}" for problem in problems]
    more: dict[str, Any] = {"response_metadata": {"messages": messages}}
    if error == "invalid_blocks":
        more["errors"] = list(problems)
    return ApiError(error, **more)
