"""Text of errors in comments, with the comment or the command that helps."""

from __future__ import annotations

from typing import Final

from draftsman.errors import CommandHint, DraftsmanError, with_hint

_COMMENTS: Final = {
    "approve|deny": "comment approve, or deny and a reason",
    "answer": "comment the number of a choice, or /answer and your answer",
}
"""Comments with the effect of a command."""


def error_text(error: DraftsmanError) -> str:
    """Return an error's message, with its hint worded for a card."""
    text = f"{error.subject} {error.reason}".lstrip()
    if error.hint is None:
        return text
    if not isinstance(error.hint, CommandHint):
        return with_hint(text, error.hint)
    terminal = f"in a terminal: draftsman {error.hint.line}"
    return with_hint(text, _COMMENTS.get(error.hint.name, terminal))
