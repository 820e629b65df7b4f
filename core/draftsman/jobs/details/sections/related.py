"""The jobs that a job is connected with: retries, its group, parents and children."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from draftsman.ids import job_name
from draftsman.jobs.details.job_details import JobDetails
from draftsman.jobs.details.sections.section import (
    Entry,
    Line,
    LineSpan,
    Reader,
    faint,
    flat,
    name,
    status_span,
)
from draftsman.jobs.retries import ErrorClass
from draftsman.jobs.status_display import Meaning
from draftsman.text import first_line
from draftsman.workflows.dependencies import JobTree, TreeJob

GROUP: Final = "group "
"""The name of the entry of a group begins with it."""
MAX_DEPTH: Final = 20
"""Maximum depth that is indented; deeper jobs are aligned with it."""
MAX_PARENTS: Final = 8
"""Maximum number of parents named on a line."""


def retries(details: JobDetails, reader: Reader) -> Iterator[Entry]:
    """Yield the jobs of a chain of retries, the oldest first."""
    for link in details.retry_chain if len(details.retry_chain) > 1 else ():
        is_denied = link.error_class == ErrorClass.DENIED
        error = Meaning.DENIED if is_denied else Meaning.FAILURE
        origin = f"retry of {job_name(link.retry_of)}" if link.retry_of else "original job"
        marker = "   this job" if link.number == details.job.number else ""
        line: Line = (
            name(f"{link.name:<10}"),
            status_span(link.status, denied=is_denied),
            faint(f"  {origin}{marker}"),
            LineSpan(f"  {first_line(link.last_error)}" if link.last_error else "", error),
        )
        yield Entry(link.name, (line,))


def group(details: JobDetails, reader: Reader) -> Iterator[Entry]:
    """Yield the group with its progress."""
    if (of_job := details.group) is not None:
        line: Line = (
            name(of_job.name),
            f"  {of_job.progress}",
            faint(f"  {of_job.kind}, on failure: {of_job.on_failure}"),
        )
        yield Entry(f"{GROUP}{of_job.name}", (line,))


def parents(details: JobDetails, reader: Reader) -> Iterator[Entry]:
    """Yield the job that spawned this job, and those that it waits or waited for."""
    tree = details.tree
    if tree.spawned_by is not None:
        spawner = job_name(tree.spawned_by)
        yield Entry(f"spawner {spawner}", ((name(spawner), "  spawned this job"),))
    for parent in tree.parents:
        line: Line = (
            name(parent.name),
            f"  {first_line(parent.title or parent.type, 60)}  ",
            status_span(parent.status),
            faint(f"  on {parent.condition}"),
        )
        yield Entry(f"parent {parent.name}", (line,))


def children(details: JobDetails, reader: Reader) -> Iterator[Entry]:
    """Yield the job and all that wait for it or that it spawned, directly or not."""
    if len(details.tree.jobs) > 1:
        for job, line in tree_lines(details.tree):
            yield Entry("" if job is None else f"tree {job.name}", (line,))


def tree_lines(tree: JobTree) -> Iterator[tuple[TreeJob | None, Line]]:
    """Yield each job with its line, under its newest parent; the number of others is no job."""
    of_parent: dict[int, list[TreeJob]] = {}
    for job in tree.jobs[1:]:
        of_parent.setdefault(max(job.parents), []).append(job)
    stack = [(tree.jobs[0], "", "", 0)]
    while stack:
        job, branch, indent, depth = stack.pop()
        yield job, _job_line(job, branch)
        below = of_parent.get(job.number, [])
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
        yield None, (faint(f"and {tree.total - len(tree.jobs):,} more jobs"),)


def _job_line(job: TreeJob, branch: str) -> Line:
    others = [job_name(number) for number in sorted(job.parents)[:-1]]
    also = ", ".join(others[:MAX_PARENTS]) + (", …" if len(others) > MAX_PARENTS else "")
    return (
        faint(branch),
        name(job.name),
        f"  {first_line(job.title or job.type, 60)}  ",
        status_span(job.status),
        faint(f": {flat(job.reason)}" if job.reason else ""),
        faint(f"  also after {also}" if also else ""),
    )
