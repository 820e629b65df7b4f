"""Registry of the job screen's tabs, in the order of their keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from draftsman.deliveries.delivery import Delivery, DeliveryStatus
from draftsman.ids import job_name
from draftsman.jobs.retries import ErrorClass
from draftsman.text import first_line
from draftsman_tui.dashboard.jobs.details.log import log
from draftsman_tui.dashboard.jobs.details.questions import questions
from draftsman_tui.dashboard.jobs.details.row_layout import (
    Item,
    Row,
    note,
    row_of,
    section,
    text_row,
    wrap_row,
)
from draftsman_tui.dashboard.jobs.details.runs import runs, usage
from draftsman_tui.dashboard.jobs.details.snapshot import JobSnapshot
from draftsman_tui.dashboard.jobs.details.ticket import json_rows, ticket
from draftsman_tui.dashboard.tables.resource import Cell
from draftsman_tui.entities.artifacts import file_text, format_size, is_empty_patch
from draftsman_tui.entities.deliveries import (
    error_text,
    status_cell,
    subject_text,
    target_text,
)
from draftsman_tui.entities.events import event_text, missing_months
from draftsman_tui.entities.jobs import DENIED, status_text
from draftsman_tui.entities.workflows import tree_lines
from draftsman_tui.terminal import times
from draftsman_tui.terminal.output import line, one_line, styled

if TYPE_CHECKING:
    from draftsman.jobs.job_summary import RetryLink
    from draftsman.workflows.dependencies import JobTree, Parent
    from draftsman.workflows.groups import JobGroup


# Diff tab: the state of a job without a diff; the diff itself has its own viewer.


def diff(snapshot: JobSnapshot, width: int, now: datetime) -> list[Item]:
    """Return a note that there is no diff."""
    if snapshot.patch is not None and snapshot.patch.text:
        return []
    so_far = "" if snapshot.over else " so far"
    return [note(f"{snapshot.job.name} has no changes{so_far}", width)]


def truncation(snapshot: JobSnapshot) -> str:
    """Return the note that the diff is truncated; "" for a whole diff."""
    if snapshot.patch is None or not snapshot.patch.cut:
        return ""
    size = format_size(snapshot.patch.size)
    return f"truncated; full diff ({size}): draftsman diff {snapshot.job.name}"


# Timeline tab: events of a job, in the format of `draftsman events`.


def timeline(snapshot: JobSnapshot, width: int, now: datetime) -> list[Item]:
    """Return an item for each event, oldest first."""
    name = snapshot.job.name
    notes = [
        f"{gap}; see: draftsman archives --help"
        for gap in missing_months(snapshot.details.archives)
    ]
    if snapshot.earlier:
        notes.append(f"… older events omitted; all events: draftsman events {name}")
    events = [
        Item(f"{name}#{event.id}", (row_of(event_text(event, now=now)),))
        for event in snapshot.events
    ]
    if not events and not notes:
        notes.append("No events yet")
    return [*(note(text, width) for text in notes), *events]


# Related tab: retries, parents, children and the group of a job.
#
# The key of an item ends with the name that Enter opens.


GROUP_KEY: Final = "group "
"""Start of the key of the item of the group."""
_INDENT: Final = 4


def related(snapshot: JobSnapshot, width: int, now: datetime) -> list[Item]:
    """Return an item for each retry, for the group, and for each parent and child."""
    sections = {
        "Retries": _retries(snapshot, width),
        "Group": _group(snapshot.details.group, width),
        "Parents": _parents(snapshot.details.tree, width),
        "This job and its children": _children(snapshot.details.tree, width),
    }
    items = [item for title, section in sections.items() for item in _titled(title, section)]
    nothing = f"{snapshot.job.name}: no retries, parents, children or group"
    return items or [note(nothing, width)]


def _titled(title: str, items: Iterator[Item]) -> Iterator[Item]:
    """Put a title above the first item."""
    for first in items:
        yield Item(first.key, ((), (Cell(title, "head"),), *first.rows), title_rows=2)
        yield from items


def _retries(snapshot: JobSnapshot, width: int) -> Iterator[Item]:
    """Yield the jobs of the retry chain, the oldest first."""
    for link in snapshot.details.retry_chain if len(snapshot.details.retry_chain) > 1 else ():
        yield Item(link.name, tuple(_retry_rows(link, snapshot, width)))


def _retry_rows(link: RetryLink, snapshot: JobSnapshot, width: int) -> list[Row]:
    marker = "   this job" if link.number == snapshot.job.number else ""
    error = DENIED if link.error_class == ErrorClass.DENIED else "red"
    origin = f"  retry of {job_name(link.retry_of)}" if link.retry_of else "  original job"
    text = line(
        styled(f"  {link.name:<10}", "bold"),
        status_text(link.status, link.error_class),
        styled(f"{origin}{marker}", "dim"),
        styled(f"  {first_line(link.last_error)}" if link.last_error else "", error),
    )
    return wrap_row(row_of(text), width, _INDENT)


def _group(group: JobGroup | None, width: int) -> Iterator[Item]:
    if group is not None:
        text = line(
            styled(f"  {group.name}", "bold"),
            f"  {group.progress}",
            styled(f"  {group.kind}, on failure: {group.on_failure}   enter: its jobs", "dim"),
        )
        yield Item(f"{GROUP_KEY}{group.name}", tuple(wrap_row(row_of(text), width, _INDENT)))


def _parents(tree: JobTree | None, width: int) -> Iterator[Item]:
    """Yield the job that spawned this job, and those that it waits or waited for."""
    if tree is None:
        return
    if tree.spawned_by is not None:
        text = line(styled(f"  {job_name(tree.spawned_by)}", "bold"), "  spawned this job")
        yield Item(
            f"spawner {job_name(tree.spawned_by)}", tuple(wrap_row(row_of(text), width, _INDENT))
        )
    for parent in tree.parents:
        yield Item(f"parent {parent.name}", tuple(_parent_rows(parent, width)))


def _parent_rows(parent: Parent, width: int) -> list[Row]:
    text = line(
        styled(f"  {parent.name}", "bold"),
        f"  {one_line(first_line(parent.title or parent.type, 60))}  ",
        status_text(parent.status),
        styled(f"  on {parent.condition}", "dim"),
    )
    return wrap_row(row_of(text), width, _INDENT)


def _children(tree: JobTree | None, width: int) -> Iterator[Item]:
    """Yield the job and all that wait for it or that it spawned, directly or not."""
    if tree is None or len(tree.jobs) < 2:
        return
    for job, text in tree_lines(tree):
        rows = wrap_row(row_of(line("  ", text)), width, _INDENT)
        yield Item("" if job is None else f"tree {job.name}", tuple(rows))


# Deliveries tab.


def deliveries(snapshot: JobSnapshot, width: int, now: datetime) -> list[Item]:
    """Return an item for each delivery, newest first."""
    if snapshot.details.deliveries:
        return [
            Item(str(delivery.seq), tuple(_rows(delivery, width, now)))
            for delivery in snapshot.details.deliveries
        ]
    name = snapshot.job.name
    if not snapshot.details.targets:
        empty = f"{name} has no notification targets. To set them: draftsman submit --notify log …"
        return [note(empty, width)]
    targets = ", ".join(f"{target.channel}:{target.target}" for target in snapshot.details.targets)
    return [note(f"{name} has no deliveries yet. Targets: {targets}", width)]


def _rows(delivery: Delivery, width: int, now: datetime) -> list[Row]:
    kind = str(delivery.kind)
    label = f"{kind} {subject_text(delivery)}" if delivery.question else kind
    sent = times.ago(delivery.sent_at or delivery.created_at, now)
    attempts = f"  {delivery.attempts} attempts" if delivery.attempts > 1 else ""
    head = row_of(
        line(
            f"{delivery.seq:>5}  ",
            styled(f"{label:<18}", "bold"),
            f"{target_text(delivery)}  ",
            status_cell(delivery),
            styled(f"  {sent}{attempts}", "dim"),
        )
    )
    rows = wrap_row(head, width, 7)
    is_dead = delivery.status is DeliveryStatus.DEAD_LETTER
    if error := error_text(delivery, now):
        lead = Cell(" " * 7)
        rows += wrap_row((lead, *text_row(error, "bad" if is_dead else "dim")), width, 7)
    if is_dead:
        rows.append((Cell("       R: resend", "key"),))
    return rows


# Files tab: artifacts and the result.


def artifacts(snapshot: JobSnapshot, width: int, now: datetime) -> list[Item]:
    """Return an item for each file, and then the result."""
    name = snapshot.job.name
    result = section("result", "Result", list(json_rows(snapshot.job.result, snapshot.job, width)))
    if not snapshot.details.artifacts and not result:
        return [note(f"{name} has no files" + ("" if snapshot.over else " yet"), width)]
    files = [
        Item(f"{file.run}/{file.name}", tuple(_file_rows(file, snapshot, width, now)))
        for file in snapshot.details.artifacts
    ]
    return [*(files or [note(f"{name} has no files", width)]), *result]


def _file_rows(file: Any, snapshot: JobSnapshot, width: int, now: datetime) -> list[Row]:
    created = styled(f"  {times.ago(file.created_at, now)}", "dim")
    return wrap_row(row_of(line(file_text(file, over=snapshot.over), created)), width, 4)


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
             count=lambda snapshot: len(snapshot.details.runs)),
        JobTab("diff", "diff", "Diff of a job.", diff,
             count=lambda snapshot: sum(
                 file.kind == "patch" and not is_empty_patch(file)
                 for file in snapshot.details.artifacts)),
        JobTab("questions", "Q&A", "Questions and answers of a job.", questions, selectable=True,
             ticks=True, shows_count=True, count=lambda snapshot: len(snapshot.details.questions),
             needs_attention=lambda snapshot: snapshot.open is not None),
        JobTab("deliveries", "deliv", "Deliveries of a job.", deliveries, selectable=True,
             ticks=True, shows_count=True, count=lambda snapshot: len(snapshot.details.deliveries),
             needs_attention=lambda snapshot: any(
                 delivery.status is DeliveryStatus.DEAD_LETTER
                 for delivery in snapshot.details.deliveries)),
        JobTab("runs", "runs", "Runs of a job, its steps and checkpoints.", runs,
             selectable=True, ticks=True, shows_count=True,
             count=lambda snapshot: len(snapshot.details.runs)),
        JobTab("usage", "usage", "Resource usage of a job.", usage, selectable=True, ticks=True,
             count=lambda snapshot: sum(bool(run.usage) for run in snapshot.details.runs)),
        JobTab("related", "related", "Retries, parents and children of a job, and its group.",
             related, selectable=True),
        JobTab("artifacts", "files", "Files and result of a job.", artifacts,
             selectable=True, shows_count=True,
             count=lambda snapshot: bool(snapshot.job.result) + sum(
                 not is_empty_patch(file) for file in snapshot.details.artifacts)),
    )
}  # fmt: skip
NAMES: Final = tuple(JOB_TABS)
