"""Log tab: the newest lines of the runs of a job, and the activity of its agent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import groupby
from typing import Final

from draftsman.agent_runs.activity.log_entries import OUTPUT, LogEntry, entry_text
from draftsman.entities.cells import Cell
from draftsman.formats import times
from draftsman.ids import run_text
from draftsman.jobs.details.log_lines import FOLDED_LINES, entry_line, fold
from draftsman_tui.common.events import no_log
from draftsman_tui.dashboard.jobs.details.log_buffer import LINES, LogLine, LogView
from draftsman_tui.dashboard.jobs.details.row_layout import (
    MAX_ROWS,
    Item,
    note,
    row_of,
    visible,
    wrap_row,
)
from draftsman_tui.dashboard.jobs.details.snapshot import JobSnapshot
from draftsman_tui.dashboard.jobs.details.tab import JobTab, declare_tab

MONTH: Final = timedelta(days=31)


def log(snapshot: JobSnapshot, width: int, now: datetime) -> list[Item]:
    """Return an item for each line, with a heading for each run."""
    if snapshot.log is None:
        return [note("loading …", width)]
    if not snapshot.log.lines:
        return [note(_empty_text(snapshot, snapshot.log, now), width)]
    return list(_items(snapshot, snapshot.log, width, now))


def _items(snapshot: JobSnapshot, log_view: LogView, width: int, now: datetime) -> Iterator[Item]:
    if log_view.earlier:
        name = snapshot.job.name
        yield note(f"… newest {LINES:,} lines; full log: draftsman logs {name}", width)
    run = log_view.lines[0].run - 1 if log_view.earlier else 0
    agent_runs = {line.run for line in log_view.lines if line.kind != OUTPUT}
    for (ordinal, kind), block in groupby(log_view.lines, lambda line: (line.run, line.kind)):
        if ordinal != run:
            yield from _empty_runs(snapshot, log_view, run, ordinal)
            run = ordinal
            yield _run_heading(snapshot, run, now)
        folds = not log_view.full and ordinal in agent_runs
        yield from _block([*block], FOLDED_LINES.get(kind) if folds else None, width, now)
    yield from _empty_runs(snapshot, log_view, run, None)


def _block(lines: Sequence[LogLine], most: int | None, width: int, now: datetime) -> Iterator[Item]:
    """Yield the lines of a kind that follow each other, folded if there are more than `most`."""
    begin, hidden, end = fold(lines, most or len(lines))
    for line in begin:
        yield _call(line, line.call, width, now) if line.call else _item(line, width)
    if hidden:
        yield note(f"… {hidden:,} more lines; enter shows them", width)
    yield from (_item(line, width) for line in end)


def _call(line: LogLine, call: LogEntry, width: int, now: datetime) -> Item:
    """Return the line of an open call, with how long it runs."""
    row = row_of(entry_line(call, entry_text(call, now)))
    return Item(str(line.nth), tuple(wrap_row(row, width, most=MAX_ROWS)))


def _empty_runs(
    snapshot: JobSnapshot, log_view: LogView, after: int, before: int | None
) -> Iterator[Item]:
    for run in snapshot.details.runs if log_view.run is None else ():
        if run.ordinal > after and (before is None or run.ordinal < before):
            yet = "" if run.finished_at else " yet"
            heading = f"── {run_text(run.ordinal)}, {run.status}: no output{yet} ──"
            yield Item(f"run {run.ordinal}", ((Cell(heading, "calm"),),))


def _run_heading(snapshot: JobSnapshot, ordinal: int, now: datetime) -> Item:
    run = next(
        (candidate for candidate in snapshot.details.runs if candidate.ordinal == ordinal), None
    )
    when = f", {run.status}, started {times.clock(run.started_at, now)}" if run else ""
    return Item(f"run {ordinal}", ((Cell(f"── {run_text(ordinal)}{when} ──", "calm"),),))


@lru_cache(maxsize=4 * LINES)
def _item(line: LogLine, width: int) -> Item:
    row = line.cells or (Cell(visible(line.text)),)
    rows = wrap_row(row, width, most=MAX_ROWS)
    if line.truncated:
        rows = [*rows, (Cell(f"… {line.truncated:,} more characters", "dim"),)]
    return Item(str(line.nth), tuple(rows))


def _empty_text(snapshot: JobSnapshot, log_view: LogView, now: datetime) -> str:
    if log_view.run is not None:
        return f"{run_text(log_view.run)} has no output; l: log of all runs"
    finished_at = snapshot.job.finished_at
    retention = snapshot.logs_kept
    if finished_at is None:
        return f"{snapshot.job.name} has no output yet"
    if retention is not None and now - finished_at > retention * MONTH:
        return f"Log deleted: logs are kept for {retention} months after a job finishes"
    return no_log(snapshot.job.number, retention)


declare_tab(
    JobTab(
        "log",
        "Log of a job's runs, live.",
        log,
        number_key="3",
        follows=True,
        count=lambda snapshot: len(snapshot.details.runs),
    )
)
