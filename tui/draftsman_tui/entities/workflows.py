"""Text rendering of trees of jobs that wait for each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from draftsman.text import first_line, humanize
from draftsman_tui.entities.jobs import status_text
from draftsman_tui.terminal.output import line, one_line, styled

if TYPE_CHECKING:
    from rich.text import Text

    from draftsman.workflows.dependencies import JobTree, Parent, TreeJob
    from draftsman.workflows.groups import JobGroup

MAX_DEPTH: Final = 20
"""Maximum depth that is indented; deeper jobs are aligned with it."""
MAX_PARENTS: Final = 8
"""Maximum number of parents named on a line."""


def parents_text(parents: Sequence[Parent]) -> str:
    """List the parents of a job with their statuses."""
    names = [f"{parent.name} {humanize(parent.status)}" for parent in parents[:MAX_PARENTS]]
    if len(parents) > MAX_PARENTS:
        names.append(f"{len(parents) - MAX_PARENTS:,} more")
    conditions = {str(parent.condition) for parent in parents} - {"success"}
    on = f" (on {', '.join(sorted(conditions))})" if conditions else ""
    return ", ".join(names) + on


def parents_data(parents: Sequence[Parent]) -> list[dict[str, Any]]:
    """Return the JSON objects of parents, without their results."""
    return [
        {
            "number": parent.number,
            "condition": parent.condition,
            "met": parent.met,
            "status": parent.status,
        }
        for parent in parents
    ]


def group_data(group: JobGroup) -> dict[str, Any]:
    """Return the JSON object of the group of a job."""
    names = ("name", "kind", "on_failure", "state", "progress")
    return {name: getattr(group, name) for name in names}


def tree_lines(tree: JobTree) -> Iterator[tuple[TreeJob | None, Text]]:
    """Yield each job with its line, under its newest parent; the number of others is no job."""
    children: dict[int, list[TreeJob]] = {}
    for job in tree.jobs[1:]:
        children.setdefault(max(job.parents), []).append(job)
    stack = [(tree.jobs[0], "", "", 0)]
    while stack:
        job, branch, indent, depth = stack.pop()
        yield job, _job_line(job, branch)
        below = children.get(job.number, [])
        for place, child in reversed(list(enumerate(below))):
            last = place == len(below) - 1
            if depth >= MAX_DEPTH:
                stack.append((child, branch, indent, depth))
                continue
            stack.append(
                (
                    child,
                    f"{indent}{'└─ ' if last else '├─ '}",
                    f"{indent}{'   ' if last else '│  '}",
                    depth + 1,
                )
            )
    if tree.total > len(tree.jobs):
        yield None, styled(f"and {tree.total - len(tree.jobs):,} more jobs", "dim")


def _job_line(job: TreeJob, branch: str) -> Text:
    other_parents = [f"D-{number}" for number in sorted(job.parents)[:-1]]
    also = ", ".join(other_parents[:MAX_PARENTS]) + (
        ", …" if len(other_parents) > MAX_PARENTS else ""
    )
    reason = f": {one_line(job.reason)}" if job.reason else ""
    return line(
        styled(branch, "dim"),
        styled(job.name, "bold"),
        f"  {first_line(job.title or job.type, 60)}  ",
        status_text(job.status),
        styled(reason, "dim"),
        styled(f"  also after {also}" if also else "", "dim"),
    )
