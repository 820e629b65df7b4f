"""Detection of diffs, and their statistics. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

MAX_FILES: Final = 20
"""Files listed by name."""
_HUNK: Final = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")


def is_diff(text: str) -> bool:
    """Return whether a text is a unified diff."""
    lines = text.splitlines()
    return any(old.startswith("--- ") and new.startswith("+++ ") for old, new in pairwise(lines))


def diffstat(diff: str) -> str:
    """Count the added and removed lines of each file, and their sums, as `git diff --stat`."""
    files = list(_files(diff.splitlines()))
    plus = sum(added for _, added, _ in files)
    minus = sum(removed for _, _, removed in files)
    lines = [f"{name} | +{added} -{removed}" for name, added, removed in files[:MAX_FILES]]
    if len(files) > MAX_FILES:
        lines.append(f"… and {len(files) - MAX_FILES} more")
    noun = "file" if len(files) == 1 else "files"
    return "\n".join([*lines, f"{len(files)} {noun} changed, +{plus} -{minus}"])


def _files(lines: list[str]) -> Iterator[tuple[str, int, int]]:
    """Yield (name, lines added, lines removed) of each file."""
    name: str | None = None
    added = removed = old = new = 0
    for line in lines:
        if old > 0 or new > 0:
            kind = line[:1]
            added, removed = added + (kind == "+"), removed + (kind == "-")
            old, new = old - (kind in " -" or not kind), new - (kind in " +" or not kind)
        elif (hunk := _HUNK.match(line)) is not None:
            old, new = int(hunk[1] or 1), int(hunk[2] or 1)
        elif line.startswith(("--- ", "diff --git ")):
            if name is not None and line.startswith("diff --git "):
                yield name, added, removed
                name, added, removed = None, 0, 0
            elif name is not None and added + removed:
                yield name, added, removed
                added = removed = 0
            name = _name(line) or name
        elif line.startswith("+++ ") and not line.startswith("+++ /dev/null"):
            name = _name(line)
    if name is not None:
        yield name, added, removed


def _name(line: str) -> str | None:
    if line.startswith("diff --git "):
        return line.rpartition(" b/")[2] or None
    path = line[4:].partition("\t")[0].strip()
    return None if path == "/dev/null" else path.removeprefix("a/").removeprefix("b/")
