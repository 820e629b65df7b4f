"""Comments of a request for changes, on a changed file or on a line of it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

MAX_COMMENTS: Final = 50
"""Maximum comments of a request; the constraint of the table has the same."""


@dataclass(frozen=True, slots=True)
class ReviewComment:
    """A comment on a changed file; `line` is its number in the new version, None: the file."""

    path: str
    text: str
    line: int | None = None

    @property
    def place(self) -> str:
        """The file, or the line of it: `src/a.py:3`."""
        return self.path if self.line is None else f"{self.path}:{self.line}"

    def __str__(self) -> str:
        return f"{self.place}: {self.text}"

    def as_json(self) -> dict[str, Any]:
        """Return the fields that are set, as columns store them."""
        fields: dict[str, Any] = {"path": self.path, "text": self.text}
        return fields if self.line is None else fields | {"line": self.line}


def comments_of(data: Mapping[str, Any] | None) -> tuple[ReviewComment, ...]:
    """Return the comments in the payload of an answer, or in a resolution."""
    return tuple(ReviewComment(**item) for item in (data or {}).get("comments", ()))


def request_text(reason: str, comments: Sequence[ReviewComment]) -> str:
    """Return a request for changes as its agent gets it, as the database writes the message."""
    return "\n\n".join(filter(None, (reason, "\n".join(map(str, comments)))))
