"""Usage tab: the time and the tokens of the runs of a job."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from draftsman.entities.cells import ROLES, Cell
from draftsman.formats import times
from draftsman.formats.invisible import one_line
from draftsman.ids import run_name, run_text
from draftsman.jobs.runs.run import MEANINGS, Run, RunStatus
from draftsman.value_format import sum_usage, usage_lines
from draftsman_tui.dashboard.jobs.details.row_layout import Item, Row, note, text_row, wrap_row
from draftsman_tui.dashboard.jobs.details.snapshot import JobSnapshot
from draftsman_tui.dashboard.jobs.details.tab import JobTab, declare_tab

_INDENT = 9


def usage(snapshot: JobSnapshot, width: int, now: datetime) -> list[Item]:
    """Return an item with the usage of each run, and the total."""
    if not snapshot.details.runs:
        return [note(f"{snapshot.job.name} has no runs yet", width)]
    items = []
    for run in snapshot.details.runs:
        usage_row = _line(
            run_text(run.ordinal), _run_seconds([run], now), run.usage or {}, run.status
        )
        rows = wrap_row(usage_row, width, _INDENT)
        items.append(Item(run_name(run.job, run.ordinal), tuple(rows)))
    total = _line(
        "all",
        _run_seconds(snapshot.details.runs, now),
        sum_usage(run.usage for run in snapshot.details.runs),
    )
    job = snapshot.job
    seconds = ((job.finished_at or now) - job.created_at).total_seconds()
    end = "completion" if snapshot.over else "now"
    elapsed = text_row(f"   from creation to {end}: {times.span(seconds)}", "dim")
    return [*items, Item("", ((), *wrap_row(total, width, _INDENT), elapsed))]


def _line(head: str, seconds: float, usage: dict[str, Any], status: RunStatus | None = None) -> Row:
    return (
        Cell(f"  {head:<6} ", "head"),
        Cell(f"{status or '':<12}", ROLES[MEANINGS[status]] if status else ""),
        Cell(f"{times.span(seconds):>7}  "),
        Cell(
            one_line(usage_lines(usage)) if usage else "no usage reported", "" if usage else "dim"
        ),
    )


def _run_seconds(all_runs: Iterable[Run], now: datetime) -> float:
    return sum(((run.finished_at or now) - run.started_at).total_seconds() for run in all_runs)


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
