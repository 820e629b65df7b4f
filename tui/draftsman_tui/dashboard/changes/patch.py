"""Rows of patches with folded files and comments, computed on demand. Pure."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from draftsman.agent_runs.changes.diff_reader import MAX_NAMED, Diff, DiffFile
from draftsman.agent_runs.changes.shown_code import shown_code
from draftsman.formats.amounts import counted

MAX_LINE: Final = 2000
"""Maximum characters of a line to show."""


class Patch(Diff):
    """A patch with the lines that replace others."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._partners = array("I", bytes(4 * len(self.lines)))
        self._pair()
        highest = max(max(column, default=0) for column in (self.old, self.new))
        self.digits = max(2, len(str(highest)))
        """Width of a line number."""
        self.width = max((_width(line) for line in self.lines), default=0)
        """Width of the widest line in cells, at most."""

    def _pair(self) -> None:
        """Pair each added line with the removed line in its place."""
        removed = added = 0
        for index, kind in enumerate(self.kinds):
            if kind == "-":
                removed, added = (1 if added else removed + 1), 0
            elif kind == "+" and added < removed:
                partner = index - removed  # each added line is as far from its removed line
                self._partners[index], self._partners[partner] = partner, index
                added += 1
            elif kind != "+":
                removed = added = 0

    def partner(self, index: int) -> int | None:
        """Return the line that an added line replaces, or by which a removed line is replaced.

        The first removed line of a block is replaced by the first added line, and so on.
        """
        return self._partners[index] or None

    def location(self, index: int) -> str:
        """Return the location of a line: `src/main.py:12`; of a removed line, by its old number."""
        file = self.files[self.file_of(index)]
        number = self.new[index] or self.old[index]
        return f"{file.path}:{number}" if number else file.path

    def notes(self, file: DiffFile) -> list[str]:
        """Return what the lines of a file do not show, also its lines before the first hunk."""
        untold = [shown_code(self.lines[index]).text for index in file.untold[:MAX_NAMED]]
        if len(file.untold) > MAX_NAMED:
            untold.append(counted(len(file.untold) - MAX_NAMED, "more line"))
        return [*file.notes, *untold]

    def file_of(self, index: int) -> int:
        """Return the index of the file that a line belongs to."""
        return max(0, bisect_right(self.files, index, key=lambda file: file.body) - 1)


@dataclass(frozen=True, slots=True)
class PatchRow:
    """A row: the head of a file, a line, or with `note` a comment below its line."""

    file: int
    line: int | None = None
    note: bool = False
    replaced: int | None = None
    """The removed line beside an added line, side by side."""


class PatchRows:
    """Rows of a patch: the head of each file, and the lines and comments of those unfolded."""

    def __init__(
        self, patch: Patch, folded: frozenset[int] = frozenset(), comments: Sequence[int] = ()
    ) -> None:
        """`comments` has the indexes of lines with a comment, in order."""
        self._patch = patch
        self._folded = folded
        self._comments = sorted(comments)
        sizes = (
            1 if nth in folded else 1 + file.end - file.body + len(self._within(file))
            for nth, file in enumerate(patch.files)
        )
        self._starts = [0, *accumulate(sizes)]

    def __len__(self) -> int:
        return self._starts[-1]

    def at(self, row: int) -> PatchRow:
        """Return a row."""
        nth = bisect_right(self._starts, row) - 1
        offset = row - self._starts[nth] - 1
        if offset < 0:
            return PatchRow(nth)
        file = self._patch.files[nth]
        for shift, line in enumerate(self._within(file)):
            below = line - file.body + shift + 1
            if offset < below:
                return PatchRow(nth, file.body + offset - shift)
            if offset == below:
                return PatchRow(nth, line, note=True)
        return PatchRow(nth, file.body + offset - len(self._within(file)))

    def head_of(self, file: int) -> int:
        """Return the row of the head of a file."""
        return self._starts[file]

    def row_of(self, line: int) -> int:
        """Return the row of a line, or of the head of its folded file."""
        nth = self._patch.file_of(line)
        if nth in self._folded:
            return self._starts[nth]
        file = self._patch.files[nth]
        above = bisect_left(self._within(file), line)
        return self._starts[nth] + 1 + line - file.body + above

    def _within(self, file: DiffFile) -> Sequence[int]:
        first = bisect_left(self._comments, file.body)
        last = bisect_left(self._comments, file.end)
        return self._comments[first:last]


class SideRows:
    """Rows of a patch whose removed lines are beside the added lines in their place.

    They are as `PatchRows`, but all of them are computed at once.
    """

    def __init__(
        self, patch: Patch, folded: frozenset[int] = frozenset(), comments: Sequence[int] = ()
    ) -> None:
        self._rows: list[PatchRow] = []
        self._heads: list[int] = []
        self._row_of: dict[int, int] = {}
        noted = set(comments)
        for nth, file in enumerate(patch.files):
            self._heads.append(len(self._rows))
            self._rows.append(PatchRow(nth))
            for line in range(file.body, file.end):
                if nth in folded:
                    self._row_of[line] = self._heads[-1]
                elif patch.old[line] and not patch.new[line] and patch.partner(line) is not None:
                    continue  # beside the line that replaces it
                else:
                    self._add(nth, line, patch.partner(line), noted)

    def _add(self, file: int, line: int, replaced: int | None, noted: Collection[int]) -> None:
        for index in filter(None, (line, replaced)):
            self._row_of[index] = len(self._rows)
        self._rows.append(PatchRow(file, line, replaced=replaced))
        self._rows += [
            PatchRow(file, index, note=True)
            for index in (replaced, line)
            if index is not None and index in noted
        ]

    def __len__(self) -> int:
        return len(self._rows)

    def at(self, row: int) -> PatchRow:
        """Return a row."""
        return self._rows[row]

    def head_of(self, file: int) -> int:
        """Return the row of the head of a file."""
        return self._heads[file]

    def row_of(self, line: int) -> int:
        """Return the row of a line, or of the head of its folded file."""
        return self._row_of[line]


def next_hunk(patch: Patch, at: PatchRow, by: int) -> int | None:
    """Return the first line of the next hunk (-1: the previous) of any file; None at the end."""
    hunks = [hunk for file in patch.files for hunk in file.hunks]
    if at.line is None:
        line = patch.files[at.file].body
        nth = bisect_left(hunks, line) if by > 0 else bisect_left(hunks, line) - 1
    elif by > 0:
        nth = bisect_right(hunks, at.line)
    else:
        nth = bisect_left(hunks, at.line) - 1
    return hunks[nth] if 0 <= nth < len(hunks) else None


def find_line(patch: Patch, text: str, start: int, by: int) -> int | None:
    """Return the next line (-1: the previous) that contains a text in any case, around the end."""
    wanted = text.casefold()
    count = len(patch.lines)
    for step in range(count):
        index = (start + by * step) % count
        if wanted in patch.lines[index].casefold() and (patch.new[index] or patch.old[index]):
            return index
    return None


def review_text(
    patch: Patch, comments: Mapping[int, str], accepted: Sequence[int], reason: str = ""
) -> str:
    """Return a reason with the comments by location, and the accepted files.

    `comments` are by line, or -1 minus the index of a file.
    """
    lines = [reason] if reason else []
    for line in sorted(comments, key=lambda line: _position(patch, line)):
        location = patch.location(line) if line >= 0 else patch.files[-1 - line].path
        lines.append(f"{location}: {comments[line]}")
    if accepted and lines:
        lines.append(f"accepted: {', '.join(patch.files[nth].path for nth in sorted(accepted))}")
    return "\n".join(lines)


def review_comments(patch: Patch, comments: Mapping[int, str]) -> list[str]:
    """Return comments, as for `review_text`, as `FILE:LINE=TEXT` or `FILE=TEXT`.

    That on a removed line is one on its file: no line of the new version is meant.
    """
    texts = []
    for line in sorted(comments, key=lambda line: _position(patch, line)):
        file = patch.files[patch.file_of(line) if line >= 0 else -1 - line].path
        new = patch.new[line] if line >= 0 else None
        old = patch.old[line] if line >= 0 else None
        removed = f"removed line {old}: " if old and not new else ""
        texts.append(f"{file}{f':{new}' if new else ''}={removed}{comments[line]}")
    return texts


def _width(line: str) -> int:
    """Return the width of a line in cells, at most."""
    short = line[:MAX_LINE]
    return 3 * short.count("\t") + (len(short) if short.isascii() else 2 * len(short))


def _position(patch: Patch, line: int) -> int:
    return line if line >= 0 else patch.files[-1 - line].body - 1
