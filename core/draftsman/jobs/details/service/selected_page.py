"""Pages of jobs that are selected by an index, or by the deadlines of their questions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from draftsman.database.database import Connection
from draftsman.errors import CommandHint, NotFound
from draftsman.formats.near_names import did_you_mean
from draftsman.jobs.control import store as control
from draftsman.jobs.details import store
from draftsman.jobs.job import FAILURES, WAITING
from draftsman.jobs.job_summary import JobFilters, JobSummary
from draftsman.workflows import store as workflows

_PAGE = 1000
_NEAR_GROUPS = 200
"""Newest groups whose names are compared with an unknown one."""


async def with_retries(conn: Connection, jobs: list[JobSummary]) -> list[JobSummary]:
    """Return the jobs with the retries of those that failed or are dead letters."""
    ended = [job.number for job in jobs if job.status in FAILURES]
    retries = await control.retries(conn, ended) if ended else {}
    return [
        replace(job, retried_as=retries[job.number]) if job.number in retries else job
        for job in jobs
    ]


def is_selected(filters: JobFilters) -> bool:
    """Return whether a filter is one of an index that selects jobs."""
    names = filters.get("key"), filters.get("group"), filters.get("numbers")
    flags = filters.get("paused"), filters.get("failures")
    return any(flags) or any(value is not None for value in names)


def is_by_deadline(filters: JobFilters) -> bool:
    """Return whether all jobs of a filter wait for people, so that deadlines order them."""
    statuses = filters.get("statuses")
    return bool(statuses) and WAITING.issuperset(statuses or ()) and not is_selected(filters)


async def page(conn: Connection, filters: JobFilters, params: dict[str, Any]) -> list[JobSummary]:
    """Return the jobs that match all filters; raises NotFound for a group.

    The newest are first; of jobs that all wait for people, those whose questions expire first.
    """
    limit: int = params["limit"]
    before = filters.get("before") or 2**62
    by_deadline = is_by_deadline(filters)
    after = filters.get("before")
    key = filters.get("key")
    group = filters.get("group")
    numbered = filters.get("numbers")
    keyed = None if numbered is None else {number for number in numbered if number < before}
    if key is not None:
        from draftsman.jobs.requests.store.submissions import of_idempotency_key

        of_key = {
            number for number in await of_idempotency_key(conn, key, limit) if number < before
        }
        keyed = of_key if keyed is None else keyed & of_key
    if group is not None and not await workflows.groups(conn, 1, name=group):
        names = [known.name for known in await workflows.groups(conn, _NEAR_GROUPS)]
        raise NotFound(
            f"there is no group {group!r}{did_you_mean(group, names)}", hint=CommandHint("groups")
        )
    jobs: list[JobSummary] = []
    only_paused = filters.get("paused", False)
    only_failures = filters.get("failures", False)
    while len(jobs) < limit:
        if group is not None:
            numbers = await workflows.numbers(conn, group, before, _PAGE)
        elif keyed is not None:
            numbers = sorted(keyed, reverse=True)
        elif by_deadline:
            numbers = await store.by_deadline(conn, params["statuses"], after, _PAGE)
        elif only_failures:
            numbers = await control.open_failures(conn, before, _PAGE)
        else:
            numbers = await control.paused(conn, before, _PAGE)
        for number in numbers:
            if (keyed is None or number in keyed) and len(jobs) < limit:
                bounds = {"lowest": number, "before": number + 1}
                selected = await store.page(conn, params | bounds)
                jobs += [
                    job
                    for job in selected
                    if (job.job_paused or not only_paused)
                    and (job.failure_open or not only_failures)
                ]
        if (group is None and keyed is not None) or len(numbers) < _PAGE:
            break
        before = after = numbers[-1]
    return jobs
