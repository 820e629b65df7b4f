"""Diff tab."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Final

from draftsman.domain.messages.diff import diffstat
from draftsman_tui.common.text.artifact_text import format_size, patch_line
from draftsman_tui.dashboard.job.row_layout import Item, Row, lines, note, row_of, wrap_row
from draftsman_tui.dashboard.job.snapshot import JobPatch, JobSnapshot
from draftsman_tui.dashboard.resource import Cell

LINES: Final = 5000
"""Maximum lines to show."""
MAX_LINE_LENGTH: Final = 2000
"""Maximum characters of a line to show."""


def diff(snapshot: JobSnapshot, width: int, now: datetime) -> list[Item]:
    """Return the diffstat, and an item for each file."""
    if snapshot.patch is None or not snapshot.patch.text:
        missing = ": diff not available" if snapshot.patch is None else " has no changes so far"
        state = " has no changes" if snapshot.over else missing
        return [note(f"{snapshot.job.name}{state}", width)]
    return [*_layout(snapshot.patch, width), *_truncation_note(snapshot, snapshot.patch, width)]


@lru_cache(maxsize=2)
def _layout(patch: JobPatch, width: int) -> Sequence[Item]:
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
            continue
        rows += wrap_row(row_of(patch_line(line[:MAX_LINE_LENGTH])), width, 1)
    yield Item(name, tuple(rows))


def _truncation_note(snapshot: JobSnapshot, patch: JobPatch, width: int) -> Iterator[Item]:
    hidden_lines = patch.text.count("\n") - LINES
    if patch.cut or hidden_lines > 0:
        size = format_size(patch.size)
        yield note(f"… truncated; full diff ({size}): draftsman diff {snapshot.job.name}", width)
