"""Requests that are refused, and the texts of errors on pages."""

from __future__ import annotations

from draftsman.errors import DraftsmanError
from draftsman.text import capitalized


class PageProblem(Exception):
    """A request that is answered with an error page: the HTTP status, a title and an advice."""

    def __init__(
        self, status: int, title: str, advice: str = "", *, retry_after: int | None = None
    ) -> None:
        super().__init__(title)
        self.status = status
        self.title = title
        self.advice = advice
        self.retry_after = retry_after


def error_text(error: DraftsmanError) -> str:
    """Return an error as a sentence without the hint, which names commands of a terminal."""
    text = f"{error.subject} {error.reason}" if error.subject else error.reason
    text = text.strip().rstrip(".")
    return f"{capitalized(text, error.subject)}{'' if text.endswith('?') else '.'}"
