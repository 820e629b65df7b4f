"""The difference between two trees, from their patches against the same base. Pure.

The context and the removed lines of both patches are the base wherever one of the trees differs
from it; elsewhere the trees are equal. So the repository is not needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Final

from draftsman.agent_runs.changes.diff import HUNK

MAX_LINES: Final = 20_000
"""Lines of a region that are compared; a larger region is replaced as a whole."""
_INDEX: Final = re.compile(r"index ([0-9a-f]+)\.\.([0-9a-f]+)")
_NO_NEWLINE: Final = "\\ No newline at end of file\n"

Lines = list[str]


@dataclass(slots=True)
class _Edit:
    """Base lines from `start` to before `end`, by number from 1, and the lines instead of them."""

    start: int
    end: int
    lines: Lines = field(default_factory=list)


@dataclass(slots=True)
class _File:
    """The part of a patch about a file; `base` has the known lines of the base by number."""

    text: str
    path: str
    source: str
    created: bool = False
    deleted: bool = False
    opaque: bool = False
    """Whether it is binary, renamed, or has another mode."""
    blobs: tuple[str, str] | None = None
    base: dict[int, str] = field(default_factory=dict)
    edits: list[_Edit] = field(default_factory=list)


def interdiff(before: str, after: str, *, same_base: bool = True) -> str:
    """Return the patch from the tree of one patch to the tree of another of the same base.

    Of patches with different bases, the files whose changes differ, each compared with its base.
    """
    old = _files(before)
    new = _files(after)
    paths = sorted(old.keys() | new.keys())
    differences = (
        _difference(path, old.get(path), new.get(path), same_base=same_base) for path in paths
    )
    return "".join(differences)


def _difference(path: str, old: _File | None, new: _File | None, *, same_base: bool) -> str:
    if old is None:
        return new.text if new is not None else ""
    if new is not None and (old.text == new.text or (same_base and _equal(old, new))):
        return ""
    if not same_base:
        if new is not None and _changes(old) == _changes(new):
            return ""
        old.opaque = True
    if old.opaque or (new is not None and (new.opaque or old.source != new.source)):
        note = f"diff --git a/{path} b/{path}\n# compared with the base, not with the approval\n"
        return note + (new.text.partition("\n")[2] if new is not None else "")
    new_file = new or _File("", path, path)
    hunks = "".join(_hunks(old, new_file))
    old_exists = not old.deleted
    new_exists = not old.created if new is None else not new.deleted
    if not hunks and old_exists == new_exists:
        return ""
    head = f"diff --git a/{path} b/{path}\n"
    head += "new file mode 100644\n" if not old_exists and new_exists else ""
    head += "deleted file mode 100644\n" if old_exists and not new_exists else ""
    old_path = f"a/{path}" if old_exists else "/dev/null"
    new_path = f"b/{path}" if new_exists else "/dev/null"
    return f"{head}--- {old_path}\n+++ {new_path}\n{hunks}" if hunks else head


def _equal(old: _File, new: _File) -> bool:
    same = old.blobs is not None and new.blobs is not None and old.blobs == new.blobs
    return same and (old.opaque, old.source) == (new.opaque, new.source) == (False, old.source)


def _changes(file: _File) -> list[str]:
    """Return the part of a patch about a file without its line numbers and blobs."""
    lines = file.text.split("\n")
    return ["@@" if HUNK.match(line) else line for line in lines if not _INDEX.match(line)]


def _hunks(old: _File, new: _File) -> Iterator[str]:
    base = old.base | new.base
    old_shift = 0
    new_shift = 0
    for start, end in _regions(base, [*old.edits, *new.edits]):
        before = _apply(base, old.edits, start, end)
        after = _apply(base, new.edits, start, end)
        yield from _region_hunks(before, after, start + old_shift, start + new_shift)
        old_shift += len(before) - (end - start)
        new_shift += len(after) - (end - start)


def _regions(base: dict[int, str], edits: Sequence[_Edit]) -> list[tuple[int, int]]:
    """Return the intervals of base lines that are known, with the edits in them."""
    intervals = [(number, number + 1) for number in base]
    intervals += [(edit.start, edit.end) for edit in edits]
    regions: list[tuple[int, int]] = []
    for start, end in sorted(intervals):
        if regions and start <= regions[-1][1]:
            regions[-1] = regions[-1][0], max(end, regions[-1][1])
        else:
            regions.append((start, end))
    return regions


def _apply(base: dict[int, str], edits: Sequence[_Edit], start: int, end: int) -> Lines:
    lines: Lines = []
    number = start
    for edit in edits:
        if edit.start < start or edit.start > end:
            continue
        lines += [base[n] for n in range(number, edit.start)]
        lines += edit.lines
        number = edit.end
    return lines + [base[n] for n in range(number, end)]


def _region_hunks(before: Lines, after: Lines, old_at: int, new_at: int) -> Iterator[str]:
    if before == after:
        return
    if max(len(before), len(after)) > MAX_LINES:
        groups = [[("replace", 0, len(before), 0, len(after))]]
    else:
        groups = list(SequenceMatcher(None, before, after, False).get_grouped_opcodes(3))
    for group in groups:
        _, old_start, _, new_start, _ = group[0]
        _, _, old_end, _, new_end = group[-1]
        old_range = _range(old_at + old_start, old_end - old_start)
        new_range = _range(new_at + new_start, new_end - new_start)
        yield f"@@ -{old_range} +{new_range} @@\n"
        for tag, old_start, old_end, new_start, new_end in group:
            if tag == "equal":
                yield from _marked(" ", before[old_start:old_end])
                continue
            yield from _marked("-", before[old_start:old_end])
            yield from _marked("+", after[new_start:new_end])


def _range(start: int, count: int) -> str:
    return f"{start if count else start - 1},{count}"


def _marked(sign: str, lines: Lines) -> Iterator[str]:
    for line in lines:
        yield f"{sign}{line}" if line.endswith("\n") else f"{sign}{line}\n{_NO_NEWLINE}"


def _files(patch: str) -> dict[str, _File]:
    sections = re.split(r"^(?=diff --git )", patch, flags=re.M)
    files = (_file(section) for section in sections if section.startswith("diff --git "))
    return {file.path: file for file in files}


def _file(text: str) -> _File:
    lines = text.split("\n")
    names = lines[0].removeprefix("diff --git ")
    half = len(names) // 2  # `a/PATH b/PATH`, unless it is renamed
    path = names[half + 1 :].removeprefix("b/")
    file = _File(text, path, path)
    at = 1
    while at < len(lines) and not lines[at].startswith("@@ "):
        _read_header(file, lines[at])
        at += 1
    while at < len(lines) and (match := HUNK.match(lines[at])):
        at = _read_hunk(file, lines, at + 1, match)
    return file


def _read_header(file: _File, line: str) -> None:
    if line.startswith("new file mode"):
        file.created = True
    elif line.startswith("deleted file mode"):
        file.deleted = True
    elif line.startswith(("old mode", "new mode", "GIT binary patch", "Binary files")):
        file.opaque = True
    elif line.startswith(("rename from ", "copy from ")):
        file.source = line.partition(" from ")[2]
        file.opaque = True
    elif line.startswith(("rename to ", "copy to ")):
        file.path = line.partition(" to ")[2]
    elif match := _INDEX.match(line):
        file.blobs = match[1], match[2]


def _read_hunk(file: _File, lines: Lines, at: int, match: re.Match[str]) -> int:
    """Read the lines of a hunk; return the position after it."""
    old = int(match[2] or 1)
    new = int(match[4] or 1)
    number = int(match[1]) + (0 if old else 1)
    edit: _Edit | None = None
    while at < len(lines) and (old > 0 or new > 0):
        sign = lines[at][:1] or " "
        text = lines[at][1:]
        at += 1
        cut = at < len(lines) and lines[at].startswith("\\ ")
        line = text if cut else text + "\n"
        at += cut
        if sign == " ":
            edit = None
        elif edit is None:
            edit = _Edit(number, number)
            file.edits.append(edit)
        if sign != "+":
            file.base[number] = line
            number = number + 1
            old = old - 1
        if sign != "-":
            new -= 1
        if edit is not None:
            edit.end = number
            if sign == "+":
                edit.lines.append(line)
    return at
