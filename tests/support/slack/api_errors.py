"""How Slack says no: `{"ok": false, "error": …}` with HTTP 200."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class ApiError(Exception):
    """A call that Slack refuses.

    `error` is its code and `more` what else the answer carries.
    """

    def __init__(self, error: str, **more: Any) -> None:
        super().__init__(error)
        self.error = error
        self.more = more

    def body(self) -> dict[str, Any]:
        """Return the answer."""
        return {"ok": False, "error": self.error} | self.more


def invalid_arguments(error: str, problems: Sequence[str]) -> ApiError:
    """Refuse with a list of what is wrong, in the two places where Slack puts it."""
    messages = [f"[ERROR] {problem}" for problem in problems]
    more: dict[str, Any] = {"response_metadata": {"messages": messages}}
    if error == "invalid_blocks":
        more["errors"] = list(problems)
    return ApiError(error, **more)
