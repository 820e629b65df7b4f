"""Diffs as files and lines for pages. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from draftsman.agent_runs.changes.diff import changed_files, file_name
from draftsman.formats.truncation import truncate

MAX_LINES: Final = 3000
"""Lines of a diff that a page shows; the rest is in the text file of the diff."""
MAX_WIDTH: Final = 1000
"""Characters of a line that a page shows."""
_HEADERS: Final = ("index ", "--- ", "+++ ", "new file mode ", "deleted file mode ", "similarity ")
_KINDS: Final = {"+": "add", "-": "del", "@": "hunk", "\\": "note"}


@dataclass(slots=True)
class DiffFile:
    """A file of a diff; a line has its kind: add, del, hunk, note or same."""

    path: str
    added: int = 0
    removed: int = 0
    lines: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ShownDiff:
    """The files of a diff; `hidden` is the number of lines that were left out."""

    files: list[DiffFile]
    hidden: int = 0


def shown_diff(patch: str) -> ShownDiff:
    """Return the first lines of a diff, by file."""
    counts = {path: (added, removed) for path, added, removed in changed_files(patch)}
    files: list[DiffFile] = []
    in_hunk = False
    line_count = 0
    hidden = 0
    for line in patch.removesuffix("\n").split("\n") if patch else ():
        if line.startswith("diff --git ") or (not files and line.startswith("--- ")):
            in_hunk = False
            files.append(DiffFile(file_name(line) or "?"))
            continue
        if not files:
            files.append(DiffFile("?"))
        if not in_hunk and line.startswith("+++ ") and file_name(line):
            files[-1].path = file_name(line) or files[-1].path
        in_hunk = in_hunk or line.startswith("@@ ")
        if not in_hunk and line.startswith(_HEADERS):
            continue
        if line_count >= MAX_LINES:
            hidden += 1
            continue
        line_count += 1
        kind = _KINDS.get(line[:1], "same") if in_hunk else "note"
        files[-1].lines.append((kind, truncate(line, MAX_WIDTH)))
    for file in files:
        file.added, file.removed = counts.get(file.path, (0, 0))
    return ShownDiff(files, hidden)
