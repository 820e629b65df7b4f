"""Runs tab and usage tab."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from draftsman.entities.cells import ROLES, Cell
from draftsman.formats import times
from draftsman.formats.invisible import one_line
from draftsman.ids import run_name
from draftsman.jobs.runs.run import MEANINGS, Run, RunStatus
from draftsman.value_format import sum_usage, usage_lines
from draftsman_tui.dashboard.jobs.details.row_layout import Item, Row, note, text_row, wrap_row
from draftsman_tui.dashboard.jobs.details.section_items import section_items
from draftsman_tui.dashboard.jobs.details.snapshot import JobSnapshot
from draftsman_tui.dashboard.jobs.details.tab import JobTab, declare_tab

_INDENT = 7


def runs(snapshot: JobSnapshot, width: int, now: datetime) -> list[Item]:
    """Return an item for each run: worker, times and result; then the steps and checkpoints."""
    items = section_items(snapshot, width, now, "runs", "steps", "checkpoints")
    return items or [note(f"{snapshot.job.name} has no runs yet", width)]


def usage(snapshot: JobSnapshot, width: int, now: datetime) -> list[Item]:
    """Return an item with the usage of each run, and the total."""
    if not snapshot.details.runs:
        return [note(f"{snapshot.job.name} has no runs yet", width)]
    items = [
        Item(run_name(run.job, run.ordinal), tuple(wrap_row(_usage_row(run, now), width, _INDENT)))
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


def _usage_row(run: Run, now: datetime) -> Row:
    return _line(f".{run.ordinal}", _run_seconds([run], now), run.usage or {}, run.status)


def _line(head: str, seconds: float, usage: dict[str, Any], status: RunStatus | None = None) -> Row:
    return (
        Cell(f"  {head:<4} ", "head"),
        Cell(f"{status or '':<12}", ROLES[MEANINGS[status]] if status else ""),
        Cell(f"{times.span(seconds):>7}  "),
        Cell(
            one_line(usage_lines(usage)) if usage else "no usage reported", "" if usage else "dim"
        ),
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
