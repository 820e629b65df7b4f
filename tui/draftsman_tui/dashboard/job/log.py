"""The log of a job's runs, the newest lines of it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final

from draftsman_tui.common import times
from draftsman_tui.common.event_text import no_log
from draftsman_tui.dashboard.job.log_buffer import LINES, LogLine, LogView
from draftsman_tui.dashboard.job.row_layout import MOST, Item, note, visible, wrap_row
from draftsman_tui.dashboard.job.snapshot import JobSnapshot
from draftsman_tui.dashboard.resource import Cell

MONTH: Final = timedelta(days=31)


def log(seen: JobSnapshot, width: int, now: datetime) -> list[Item]:
    """Return an item for each line, with the run where another one begins."""
    if seen.log is None:
        return [note("reading …", width)]
    if not seen.log.lines:
        return [note(_nothing(seen, seen.log, now), width)]
    return list(_items(seen, seen.log, width, now))


def _items(seen: JobSnapshot, found: LogView, width: int, now: datetime) -> Iterator[Item]:
    if found.earlier:
        name = seen.job.name
        yield note(f"… only the newest {LINES:,} lines are here; all: draftsman logs {name}", width)
    run = found.lines[0].run - 1 if found.earlier else 0
    for line in found.lines:
        if line.run != run:
            yield from _silent(seen, found, run, line.run)
            run = line.run
            yield _head(seen, run, now)
        yield _item(line, width)
    yield from _silent(seen, found, run, None)


def _silent(seen: JobSnapshot, found: LogView, after: int, before: int | None) -> Iterator[Item]:
    """Yield a heading for each run between these that wrote nothing."""
    for run in seen.runs if found.run is None else ():
        if run.ordinal > after and (before is None or run.ordinal < before):
            yet = "" if run.finished_at else " yet"
            said = f"── run {seen.job.name}.{run.ordinal}, {run.status}: wrote nothing{yet} ──"
            yield Item(f"run {run.ordinal}", ((Cell(said, "calm"),),))


def _head(seen: JobSnapshot, ordinal: int, now: datetime) -> Item:
    run = next((one for one in seen.runs if one.ordinal == ordinal), None)
    when = f", {run.status}, started {times.clock(run.started_at, now)}" if run else ""
    return Item(f"run {ordinal}", ((Cell(f"── run {seen.job.name}.{ordinal}{when} ──", "calm"),),))


@lru_cache(maxsize=4 * LINES)
def _item(line: LogLine, width: int) -> Item:
    text = visible(line.text)
    more = Cell(f"… {line.more:,} more characters", "dim") if line.more else None
    rows = wrap_row((Cell(text),), width, most=MOST)
    if more is not None:
        rows = [*rows, (more,)]
    return Item(str(line.nth), tuple(rows))


def _nothing(seen: JobSnapshot, found: LogView, now: datetime) -> str:
    if found.run is not None:
        return f"run {seen.job.name}.{found.run} logged nothing; l: the log of all runs"
    ended, kept = seen.job.finished_at, seen.logs_kept
    if ended is None:
        return f"{seen.job.name} logged nothing yet"
    if kept is not None and now - ended > kept * MONTH:
        return f"the log is gone: logs are kept for {kept} months after the end of a job"
    return no_log(seen.job.number, kept)
