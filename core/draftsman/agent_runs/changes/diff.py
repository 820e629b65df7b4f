"""Detection of diffs, and the kinds of their lines. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final

_ESCAPE: Final = re.compile(r"\\([0-7]{3}|.)")
_ESCAPED: Final = dict(zip('abtnvfr"\\', '\a\b\t\n\v\f\r"\\', strict=True))
"""Characters that git escapes by a letter; others are escaped by their octal number."""
HUNK: Final = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
"""The first line of a hunk: number and count of its old lines, and of its new lines."""


def is_diff(text: str) -> bool:
    """Return whether a text is a unified diff."""
    lines = text.splitlines()
    return any(old.startswith("--- ") and new.startswith("+++ ") for old, new in pairwise(lines))


def numbered_lines(lines: Iterable[str]) -> Iterator[tuple[str, int, int]]:
    """Yield the kind of each line of a patch, and its numbers in the old and the new version.

    The kind is that of git in a hunk (`+`, `-`, a space or a backslash), `@` for the first line of
    a hunk, and empty for all other lines. Only the counts of a hunk say where it ends, so that no
    line of a file is read as a header.
    """
    old = 0
    new = 0
    old_left = 0
    new_left = 0
    for line in lines:
        if old_left > 0 or new_left > 0:
            kind = line[:1]
            if kind == "+":
                yield kind, 0, new
                new = new + 1
                new_left = new_left - 1
            elif kind == "-":
                yield kind, old, 0
                old = old + 1
                old_left = old_left - 1
            elif kind == "\\":
                yield kind, 0, 0
            else:
                yield " ", old, new
                old = old + 1
                old_left = old_left - 1
                new = new + 1
                new_left = new_left - 1
        elif line.startswith("@@ ") and (hunk := HUNK.match(line)) is not None:
            old = int(hunk[1])
            old_left = int(hunk[2] or 1)
            new = int(hunk[3])
            new_left = int(hunk[4] or 1)
            yield "@", old, new
        else:
            yield "", 0, 0


def file_name(line: str) -> str | None:
    """Return the path in a line `diff --git`, `---` or `+++`; None for no file."""
    if line.startswith("diff --git "):
        return unquoted(line.rpartition(' "b/')[2]) or line.rpartition(" b/")[2] or None
    path = line[4:].partition("\t")[0].strip()
    if path.startswith('"'):
        path = unquoted(path[1:])
    return None if path == "/dev/null" else path.removeprefix("a/").removeprefix("b/")


def unquoted(text: str) -> str:
    """Return a path that git quoted, of the text after the first quote; "" without a last quote."""
    if not text.endswith('"'):
        return ""
    raw = _ESCAPE.sub(lambda match: _ESCAPED.get(match[1]) or chr(int(match[1], 8)), text[:-1])
    return raw.encode("latin-1", "replace").decode("utf-8", "replace")
