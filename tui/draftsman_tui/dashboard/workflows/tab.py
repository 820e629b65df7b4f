"""Related tab: retries, parents, children and the group of a job.

The key of an item ends with the name that Enter opens.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Final

from draftsman.ids import job_name
from draftsman.jobs.retries import ErrorClass
from draftsman.jobs.status_display import Meaning
from draftsman.text import first_line
from draftsman_tui.dashboard.jobs.details.row_layout import Item, Row, note, row_of, wrap_row
from draftsman_tui.dashboard.jobs.details.snapshot import JobSnapshot
from draftsman_tui.dashboard.jobs.details.tab import JobTab, declare_tab
from draftsman_tui.entities.cells import Cell
from draftsman_tui.entities.jobs import status_text
from draftsman_tui.entities.workflows import tree_lines
from draftsman_tui.terminal.colors import STYLES
from draftsman_tui.terminal.output import line, one_line, styled

if TYPE_CHECKING:
    from draftsman.jobs.job_summary import RetryLink
    from draftsman.workflows.dependencies import JobTree, Parent
    from draftsman.workflows.groups import JobGroup

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
    denied = link.error_class == ErrorClass.DENIED
    error = STYLES[Meaning.DENIED if denied else Meaning.FAILURE]
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


declare_tab(
    JobTab(
        "related",
        "Retries, parents and children of a job, and its group.",
        related,
        number_key="9",
        selectable=True,
        has_ids=True,
    )
)
