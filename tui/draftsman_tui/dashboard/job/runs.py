"""Runs, and what each of them used."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from draftsman.domain.ids import worker_name
from draftsman.domain.run import Run
from draftsman_tui.common import times
from draftsman_tui.common.job_text import run_text
from draftsman_tui.common.output import one_line
from draftsman_tui.common.value_format import sum_usage, usage_lines
from draftsman_tui.dashboard.cells import ROLES
from draftsman_tui.dashboard.job.row_layout import Item, Row, note, row_of, text_row, wrap_row
from draftsman_tui.dashboard.job.snapshot import JobSnapshot
from draftsman_tui.dashboard.resource import Cell

_HANG = 7


def runs(seen: JobSnapshot, width: int, now: datetime) -> list[Item]:
    """Return an item for each run, in their order: by whom, from when to when, how it ended."""
    if not seen.runs:
        return [note(f"{seen.job.name} has not run yet", width)]
    return [Item(name(run), tuple(_run(run, width, now))) for run in seen.runs]


def usage(seen: JobSnapshot, width: int, now: datetime) -> list[Item]:
    """Return an item for each run with what it used, and the sum."""
    if not seen.runs:
        return [note(f"{seen.job.name} has not run yet", width)]
    items = [Item(name(run), tuple(wrap_row(_used(run, now), width, _HANG))) for run in seen.runs]
    whole = _line("all", _took(seen.runs, now), sum_usage(run.usage for run in seen.runs))
    asked = f"   from the request to {'its end' if seen.over else 'now'}: {_whole(seen, now)}"
    return [*items, Item("", ((), *wrap_row(whole, width, _HANG), text_row(asked, "dim")))]


def name(run: Run) -> str:
    """Return what people call it: `D-142.3`."""
    return f"D-{run.job}.{run.ordinal}"


def _run(run: Run, width: int, now: datetime) -> Iterator[Row]:
    yield from wrap_row(row_of(run_text(run, now, error=False)), width)
    ended = f" to {times.clock(run.finished_at, now)}" if run.finished_at else ", goes on"
    heard = "" if run.finished_at else f", heard {times.ago(run.heartbeat_at, now)}"
    by = f"worker {worker_name(run.worker_id)}, {times.clock(run.started_at, now)}{ended}{heard}"
    yield (Cell(" " * _HANG), Cell(by, "dim"))
    if run.error:
        kind = f" ({run.error_class})" if run.error_class else ""
        error = (Cell(" " * _HANG), Cell(one_line(f"{run.error}{kind}"), "bad"))
        yield from wrap_row(error, width, _HANG)


def _used(run: Run, now: datetime) -> Row:
    return _line(f".{run.ordinal}", _took([run], now), run.usage or {}, str(run.status))


def _line(head: str, took: float, used: dict[str, Any], status: str = "") -> Row:
    return (
        Cell(f"  {head:<4} ", "head"),
        Cell(f"{status:<12}", ROLES.get(status, "")),
        Cell(f"{times.span(took):>7}  "),
        Cell(usage_lines(used) if used else "used nothing that was told", "" if used else "dim"),
    )


def _took(all_runs: Iterable[Run], now: datetime) -> float:
    return sum(((run.finished_at or now) - run.started_at).total_seconds() for run in all_runs)


def _whole(seen: JobSnapshot, now: datetime) -> str:
    return times.span(((seen.job.finished_at or now) - seen.job.created_at).total_seconds())
