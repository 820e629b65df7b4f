"""Runs tab and usage tab."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from draftsman.formats import times
from draftsman.ids import run_name, worker_name
from draftsman.jobs.runs.run import MEANINGS, Run, RunStatus
from draftsman_tui.dashboard.jobs.details.row_layout import (
    Item,
    Row,
    note,
    row_of,
    section,
    text_row,
    wrap_row,
)
from draftsman_tui.dashboard.jobs.details.snapshot import JobSnapshot
from draftsman_tui.dashboard.jobs.details.tab import JobTab, declare_tab
from draftsman_tui.entities.cells import ROLES, Cell
from draftsman_tui.entities.jobs import checkpoint_text, run_text, steps_text
from draftsman_tui.terminal.output import one_line
from draftsman_tui.terminal.value_format import sum_usage, usage_lines

if TYPE_CHECKING:
    from rich.text import Text

_INDENT = 7


def runs(snapshot: JobSnapshot, width: int, now: datetime) -> list[Item]:
    """Return an item for each run: worker, times and result; then the steps and checkpoints."""
    steps = steps_text(snapshot.job.name, snapshot.details.steps, now)
    checkpoints = [checkpoint_text(checkpoint, now) for checkpoint in snapshot.details.checkpoints]
    items = [Item(name(run), tuple(_run(run, width, now))) for run in snapshot.details.runs]
    return [
        *(items or [note(f"{snapshot.job.name} has no runs yet", width)]),
        *section("", "Steps", list(_rows(steps, width))),
        *section("", "Checkpoints", list(_rows(checkpoints, width))),
    ]


def _rows(texts: Sequence[Text], width: int) -> Iterator[Row]:
    for text in texts:
        yield from wrap_row(row_of(text), width, _INDENT)


def usage(snapshot: JobSnapshot, width: int, now: datetime) -> list[Item]:
    """Return an item with the usage of each run, and the total."""
    if not snapshot.details.runs:
        return [note(f"{snapshot.job.name} has no runs yet", width)]
    items = [
        Item(name(run), tuple(wrap_row(_usage_row(run, now), width, _INDENT)))
        for run in snapshot.details.runs
    ]
    total = _line(
        "all",
        _run_seconds(snapshot.details.runs, now),
        sum_usage(run.usage for run in snapshot.details.runs),
    )
    elapsed = (
        f"   from creation to {'completion' if snapshot.over else 'now'}: {_elapsed(snapshot, now)}"
    )
    return [*items, Item("", ((), *wrap_row(total, width, _INDENT), text_row(elapsed, "dim")))]


def name(run: Run) -> str:
    """Return the run's name: `D-142.3`."""
    return run_name(run.job, run.ordinal)


def _run(run: Run, width: int, now: datetime) -> Iterator[Row]:
    yield from wrap_row(row_of(run_text(run, now, error=False)), width)
    end = f" to {times.clock(run.finished_at, now)}" if run.finished_at else ", running"
    heartbeat = "" if run.finished_at else f", heartbeat {times.ago(run.heartbeat_at, now)}"
    timing = (
        f"worker {worker_name(run.worker_id)}, {times.clock(run.started_at, now)}{end}{heartbeat}"
    )
    yield (Cell(" " * _INDENT), Cell(timing, "dim"))
    if run.error:
        kind = f" ({run.error_class})" if run.error_class else ""
        error = (Cell(" " * _INDENT), Cell(one_line(f"{run.error}{kind}"), "bad"))
        yield from wrap_row(error, width, _INDENT)


def _usage_row(run: Run, now: datetime) -> Row:
    return _line(f".{run.ordinal}", _run_seconds([run], now), run.usage or {}, run.status)


def _line(head: str, seconds: float, usage: dict[str, Any], status: RunStatus | None = None) -> Row:
    return (
        Cell(f"  {head:<4} ", "head"),
        Cell(f"{status or '':<12}", ROLES[MEANINGS[status]] if status else ""),
        Cell(f"{times.span(seconds):>7}  "),
        Cell(usage_lines(usage) if usage else "no usage reported", "" if usage else "dim"),
    )


def _run_seconds(all_runs: Iterable[Run], now: datetime) -> float:
    return sum(((run.finished_at or now) - run.started_at).total_seconds() for run in all_runs)


def _elapsed(snapshot: JobSnapshot, now: datetime) -> str:
    return times.span(((snapshot.job.finished_at or now) - snapshot.job.created_at).total_seconds())


declare_tab(
    JobTab(
        "runs",
        "Runs of a job, its steps and checkpoints.",
        runs,
        number_key="7",
        selectable=True,
        ticks=True,
        has_ids=True,
        has_chart=True,
        count=lambda snapshot: len(snapshot.details.runs),
        shows_count=True,
    )
)
declare_tab(
    JobTab(
        "usage",
        "Resource usage of a job.",
        usage,
        number_key="8",
        selectable=True,
        ticks=True,
        has_ids=True,
        count=lambda snapshot: sum(bool(run.usage) for run in snapshot.details.runs),
    )
)
