"""Comments on changed files and lines, as people write them. Pure.

A comment is a line `FILE:LINE=TEXT` or `FILE=TEXT`; `FILE:LINE TEXT`, `FILE:LINE: TEXT` and
`FILE: TEXT` are the same. FILE is a file of the changes, and LINE a line of its new version that
they show.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from draftsman.agent_runs.changes.diff import numbered_lines
from draftsman.agent_runs.changes.patch_files import patch_files
from draftsman.errors import FieldError
from draftsman.questions.review_comment import ReviewComment

MAX_NAMED: Final = 5
"""Files, and ranges of lines, that a refusal names."""
_COMMENT: Final = re.compile(r"(?::(?P<line>\d{1,9})(?:\s*[=:]\s*|\s+)|\s*=\s*|:\s+)(?P<text>.*\S)")
"""What follows the name of the file."""


class ShownLines:
    """The files of a patch, each with the lines of its new version that the patch shows.

    `field` of a request for changes is the one whose lines are read: errors name it.
    """

    def __init__(self, patch: str, field: str) -> None:
        self._field = field
        lines = patch.split("\n")
        numbered = list(numbered_lines(lines))
        starts = [
            index
            for index, (line, (kind, _, _)) in enumerate(zip(lines, numbered, strict=True))
            if not kind and line.startswith("diff --git ")
        ]
        sections = pairwise([*starts, len(lines)])
        self.files: Mapping[str, list[int]] = {
            file.path: [new for kind, _, new in numbered[start:end] if kind in ("+", " ")]
            for file, (start, end) in zip(patch_files(patch), sections, strict=True)
        }
        self._longest_first = sorted(self.files, key=len, reverse=True)

    def read(self, text: str) -> ReviewComment | None:
        """Return the comment in a line; None for a line that begins with no file of the changes.

        Raises FieldError for a line of the file that the changes do not show.
        """
        for path in self._longest_first:
            if not text.startswith(path):
                continue
            match = _COMMENT.fullmatch(text, len(path))
            if match is None:
                continue
            line = None if match["line"] is None else int(match["line"])
            if line is not None and line not in self.files[path]:
                problem = f"the diff has no line {line} of {path}; {self._allowed(path)}"
                raise FieldError(problem, field=self._field)
            return ReviewComment(path, match["text"], line)
        return None

    def refusal(self, text: str) -> FieldError:
        """Return the error of a line that is no comment on these changes."""
        names = [*self.files]
        more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
        return FieldError(
            f"{text[:80]!r} is not a comment on a changed file; write FILE:LINE=TEXT or FILE=TEXT,"
            f" with one of the files of the diff: {', '.join(names[:MAX_NAMED])}{more}",
            field=self._field,
        )

    def _allowed(self, path: str) -> str:
        ranges = list(_ranges(self.files[path]))
        if not ranges:
            return f"comment on the file: {path}=TEXT"
        more = f" and {len(ranges) - MAX_NAMED} more" if len(ranges) > MAX_NAMED else ""
        return f"its lines of the new version: {', '.join(ranges[:MAX_NAMED])}{more}"


def read_comments(lines: Sequence[str], patch: str) -> list[ReviewComment]:
    """Return the comments in lines, each of which has to be one; raises FieldError."""
    shown = ShownLines(patch, "comments")
    comments = []
    for text in lines:
        if (comment := shown.read(text.strip())) is None:
            raise shown.refusal(text)
        comments.append(comment)
    return comments


def split_comments(text: str, patch: str) -> tuple[str, list[ReviewComment]]:
    """Return a text without the lines that are comments on the changes, and these comments.

    Raises FieldError for a comment on a line that the changes do not show.
    """
    shown = ShownLines(patch, "reason")
    kept = []
    comments = []
    for line in text.split("\n"):
        if (comment := shown.read(line.strip())) is None:
            kept.append(line)
        else:
            comments.append(comment)
    return "\n".join(kept).strip(), comments


def _ranges(numbers: Iterable[int]) -> Iterator[str]:
    """Yield ranges of ascending numbers: `3`, `7-9`."""
    first = last = 0
    for number in [*numbers, -1]:
        if last and number == last + 1:
            last = number
            continue
        if last:
            yield str(first) if first == last else f"{first}-{last}"
        first = last = number
