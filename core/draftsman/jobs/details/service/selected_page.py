"""Pages of jobs that are selected by an index, or by the deadlines of their questions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from draftsman.database.database import Connection
from draftsman.jobs.control import store as control
from draftsman.jobs.details import store
from draftsman.jobs.job import FAILURES, WAITING
from draftsman.jobs.job_summary import JobFilters, JobSummary
from draftsman.workflows import store as workflows

_PAGE = 1000


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


async def page(
    conn: Connection, filters: JobFilters, params: dict[str, Any], scan_limit: int
) -> tuple[list[JobSummary], int | None]:
    """Return the jobs that match all filters, and the job where the scan stopped, if it did.

    The newest are first; of jobs that all wait for people, those whose questions expire first.
    A group that does not exist has none.
    """
    limit: int = params["limit"]
    keyed = await _keyed(conn, filters, limit)
    last = filters.get("before")
    jobs: list[JobSummary] = []
    scanned = 0
    while scanned < scan_limit:
        numbers = await _numbers(conn, filters, keyed, last)
        wanted = [number for number in numbers if keyed is None or number in keyed]
        jobs += [
            job
            for job in await store.page_of(conn, wanted, params)
            if (job.job_paused or not filters.get("paused"))
            and (job.failure_open or not filters.get("failures"))
        ]
        if len(jobs) >= limit or len(numbers) < _PAGE:
            return jobs[:limit], None
        scanned += len(numbers)
        last = numbers[-1]
    return jobs, last


async def _keyed(conn: Connection, filters: JobFilters, limit: int) -> set[int] | None:
    """Return the numbers that a filter names or that have its key; None: neither is given."""
    numbers = filters.get("numbers")
    keyed = None if numbers is None else set(numbers)
    key = filters.get("key")
    if key is None:
        return keyed
    from draftsman.jobs.requests.store.submissions import of_idempotency_key

    of_key = set(await of_idempotency_key(conn, key, limit))
    return of_key if keyed is None else keyed & of_key


async def _numbers(
    conn: Connection, filters: JobFilters, keyed: set[int] | None, last: int | None
) -> list[int]:
    """Return the next numbers after the last one, of jobs that may match."""
    before = last or 2**62
    group = filters.get("group")
    if group is not None:
        return await workflows.numbers(conn, group, before, _PAGE)
    if keyed is not None:
        return sorted((number for number in keyed if number < before), reverse=True)
    if filters.get("failures"):
        return await control.open_failures(conn, before, _PAGE)
    if filters.get("paused"):
        return await control.paused(conn, before, _PAGE)
    return await store.by_deadline(conn, last, _PAGE)
