"""The changes that a job made, a file after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Final

from draftsman.domain.messages.diff import diffstat
from draftsman_tui.common.artifact_text import format_size, patch_line
from draftsman_tui.dashboard.job.row_layout import Item, Row, lines, note, row_of, wrap_row
from draftsman_tui.dashboard.job.snapshot import JobPatch, JobSnapshot
from draftsman_tui.dashboard.resource import Cell

LINES: Final = 5000
"""Lines that are shown."""
LONGEST: Final = 2000
"""Characters of a line that are looked at."""


def diff(seen: JobSnapshot, width: int, now: datetime) -> list[Item]:
    """Return the statistics, and then an item for each file."""
    if seen.patch is None or not seen.patch.text:
        missing = ": diff not available" if seen.patch is None else " has no changes so far"
        made = " left no changes" if seen.over else missing
        return [note(f"{seen.job.name}{made}", width)]
    return [*_drawn(seen.patch, width), *_rest(seen, seen.patch, width)]


@lru_cache(maxsize=2)
def _drawn(patch: JobPatch, width: int) -> Sequence[Item]:
    shown = patch.text.splitlines()[:LINES]
    stat = tuple(lines(diffstat("\n".join(shown)), width, role="head"))
    return [Item("", (*stat, ())), *_files(shown, width)]


def _files(shown: Sequence[str], width: int) -> Iterator[Item]:
    rows: list[Row] = []
    name = "changes"
    for line in shown:
        if line.startswith("diff --git "):
            if rows:
                yield Item(name, tuple(rows))
            name, rows = line.rpartition(" b/")[2], [(Cell("─" * width, "dim"),)]
        if line.startswith("index "):
            continue  # of no use to people
        rows += wrap_row(row_of(patch_line(line[:LONGEST])), width, 1)
    yield Item(name, tuple(rows))


def _rest(seen: JobSnapshot, patch: JobPatch, width: int) -> Iterator[Item]:
    more = patch.text.count("\n") - LINES
    if patch.cut or more > 0:
        what = f"the whole has {format_size(patch.size)}"
        yield note(f"… cut here; {what}: draftsman diff {seen.job.name}", width)
