"""Diffs as people see them in every front end. Pure.

Each file has its modes, and each line its numbers; what is left out is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from draftsman.agent_runs.changes.diff_reader import Diff, DiffFile
from draftsman.agent_runs.changes.shown_code import MAX_WIDTH, shown_code
from draftsman.formats.amounts import counted

MAX_LINES: Final = 3000
"""Lines of a diff that are shown; the rest is counted."""
MAX_FILES: Final = 20
"""Files that statistics list by name."""


@dataclass(frozen=True, slots=True)
class ShownLine:
    """A line with its kind and numbers as from `numbered_lines`; its text begins with its sign."""

    kind: str
    text: str
    old: int = 0
    new: int = 0
    cut: int = 0


@dataclass(frozen=True, slots=True)
class ShownFile:
    """A file of a diff, with its lines as far as they are shown."""

    file: DiffFile
    lines: Sequence[ShownLine]
    hidden: int = 0
    """Lines that were left out."""

    @property
    def size(self) -> int:
        """The number of all of its lines."""
        return len(self.lines) + self.hidden

    @property
    def notice(self) -> str:
        """Return what was left out of this file; "" for nothing."""
        return _notice([self])


@dataclass(frozen=True, slots=True)
class ShownDiff:
    """The files of a diff."""

    files: Sequence[ShownFile]

    @property
    def notice(self) -> str:
        """Return what was left out: `12 lines are not shown, 1 line is cut`; "" for nothing."""
        return _notice(self.files)

    @property
    def totals(self) -> str:
        """Return the sums in a line: `3 files changed, +9 -1, 1 executable (100755)`."""
        plus = sum(shown.file.added for shown in self.files)
        minus = sum(shown.file.removed for shown in self.files)
        special = Counter(word for shown in self.files for word in shown.file.special)
        words = [f"{count:,} {word}" for word, count in special.items()]
        return ", ".join(
            [f"{counted(len(self.files), 'file')} changed", f"+{plus} -{minus}", *words]
        )


def _notice(files: Sequence[ShownFile]) -> str:
    hidden = sum(file.hidden for file in files)
    cuts = [line.cut for file in files for line in file.lines if line.cut]
    parts = []
    if hidden:
        parts.append(f"{counted(hidden, 'more line is', 'more lines are')} not shown")
    if cuts:
        cut = counted(sum(cuts), "character")
        parts.append(f"{counted(len(cuts), 'line is', 'lines are')} cut by {cut}")
    return ", ".join(parts)


def shown_diff(patch: str, *, most: int = MAX_LINES, width: int = MAX_WIDTH) -> ShownDiff:
    """Return at most so many lines of a diff, by file."""
    diff = Diff(patch)
    files = []
    for file in diff.files:
        indexes = [*file.untold, *range(file.body, file.end)]
        lines = [_shown_line(diff, index, width) for index in indexes[:most]]
        most -= len(lines)
        files.append(ShownFile(file, lines, len(indexes) - len(lines)))
    return ShownDiff(files)


def _shown_line(diff: Diff, index: int, width: int) -> ShownLine:
    text = shown_code(diff.lines[index], width)
    return ShownLine(diff.kinds[index], text.text, diff.old[index], diff.new[index], text.cut)


def diffstat(diff: str, most: int | None = MAX_FILES) -> str:
    """Count the added and removed lines of each file, and their sums, as `git diff --stat`.

    At most so many files are listed; None: all. The sums tell the modes of all files.
    """
    shown = shown_diff(diff, most=0)
    files = [item.file for item in shown.files[:most]]
    rows = [
        ", ".join([f"{file.name} | +{file.added} -{file.removed}", *file.notes]) for file in files
    ]
    if len(shown.files) > len(files):
        rows.append(f"… and {len(shown.files) - len(files):,} more")
    return "\n".join([*rows, shown.totals])


def shown_beginning(diff: str, lines: int, room: int, measure: Callable[[str], int] = len) -> str:
    """Return the first lines of a diff as visible text, and how much of it is missing.

    The lines have at most that room, which `measure` tells of a text.
    """
    rows = diff.removesuffix("\n").split("\n")
    shown = []
    for row in rows[:lines]:
        line = shown_code(row).text
        room -= measure(line) + 1
        if room < 0:
            break
        shown.append(line)
    if hidden := len(rows) - len(shown):
        shown.append(f"[… {counted(hidden, 'more line')}]")
    return "\n".join(shown)
