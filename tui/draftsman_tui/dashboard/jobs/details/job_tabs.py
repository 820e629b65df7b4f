"""Registry of the job screen's tabs, in the order of their keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from draftsman.deliveries.delivery import DeliveryStatus
from draftsman_tui.dashboard.jobs.details.artifacts import artifacts
from draftsman_tui.dashboard.jobs.details.deliveries import deliveries
from draftsman_tui.dashboard.jobs.details.diff import diff
from draftsman_tui.dashboard.jobs.details.log import log
from draftsman_tui.dashboard.jobs.details.questions import questions
from draftsman_tui.dashboard.jobs.details.related import related
from draftsman_tui.dashboard.jobs.details.row_layout import Item
from draftsman_tui.dashboard.jobs.details.runs import runs, usage
from draftsman_tui.dashboard.jobs.details.snapshot import JobSnapshot
from draftsman_tui.dashboard.jobs.details.ticket import ticket
from draftsman_tui.dashboard.jobs.details.timeline import timeline
from draftsman_tui.entities.artifacts import is_empty_patch

Render = Callable[[JobSnapshot, int, datetime], Sequence[Item]]
"""Renders a tab for a width in cells, at a time of the database's clock."""


def _always(snapshot: JobSnapshot) -> int:
    return 1


@dataclass(frozen=True, slots=True)
class JobTab:
    """A tab. `selectable`: a cursor selects an item; `follows`: new items keep its end in view."""

    name: str
    short: str
    """Label on narrow screens."""
    help: str
    items: Render
    selectable: bool = False
    follows: bool = False
    ticks: bool = False
    """Whether it is redrawn every second."""
    count: Callable[[JobSnapshot], int] = _always
    """Number of items; a tab without items is dimmed."""
    shows_count: bool = False
    """Whether the tab bar shows the number."""
    needs_attention: Callable[[JobSnapshot], bool] = lambda snapshot: False
    """Whether it is highlighted."""


JOB_TABS: Final = {
    tab.name: tab
    for tab in (
        JobTab("timeline", "time", "Events of a job.", timeline, selectable=True, follows=True),
        JobTab("ticket", "ticket", "Request of a job.", ticket),
        JobTab("log", "log", "Log of a job's runs, live.", log, follows=True,
             count=lambda snapshot: len(snapshot.runs)),
        JobTab("diff", "diff", "Diff of a job.", diff,
             count=lambda snapshot: sum(
                 file.kind == "patch" and not is_empty_patch(file) for file in snapshot.files)),
        JobTab("questions", "Q&A", "Questions and answers of a job.", questions, selectable=True,
             ticks=True, shows_count=True, count=lambda snapshot: len(snapshot.questions),
             needs_attention=lambda snapshot: snapshot.open is not None),
        JobTab("deliveries", "deliv", "Deliveries of a job.", deliveries, selectable=True,
             ticks=True, shows_count=True, count=lambda snapshot: len(snapshot.deliveries),
             needs_attention=lambda snapshot: any(
                 delivery.status is DeliveryStatus.DEAD_LETTER
                 for delivery in snapshot.deliveries)),
        JobTab("runs", "runs", "Runs of a job, its steps and checkpoints.", runs,
             selectable=True, ticks=True, shows_count=True,
             count=lambda snapshot: len(snapshot.runs)),
        JobTab("usage", "usage", "Resource usage of a job.", usage, selectable=True, ticks=True,
             count=lambda snapshot: sum(bool(run.usage) for run in snapshot.runs)),
        JobTab("related", "related", "Retries, parents and children of a job, and its group.",
             related, selectable=True),
        JobTab("artifacts", "files", "Files and result of a job.", artifacts,
             selectable=True, shows_count=True,
             count=lambda snapshot: bool(snapshot.job.result) + sum(
                 not is_empty_patch(file) for file in snapshot.files)),
    )
}  # fmt: skip
NAMES: Final = tuple(JOB_TABS)
