"""Pages of jobs, newest first, by filters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypedDict

from draftsman.domain.job import Status
from draftsman.domain.read_models import JobSummary
from draftsman.store import read_model as store
from draftsman.store.postgres.database import Database

SCAN_LIMIT: Final = 100_000
"""Job numbers that a call scans for an agent, tag, … that no index has, in a tenth of a second."""
PAGE_LIMIT: Final = 50
"""Default number of jobs of a page."""
SCANNED: Final = ("agent", "repo", "type", "queue", "source", "tags", "invoker")
"""Filters without an index."""


class JobFilters(TypedDict, total=False):
    """Filters of a page; a job matches all of them."""

    statuses: Sequence[Status] | None
    agent: str | None
    repo: str | None
    """Name, or owner/name, in any case."""
    type: str | None
    queue: str | None
    source: str | None
    tags: Sequence[str]
    """The job has all of them; `team` also matches the tag `team=pay`."""
    invoker: str | None
    """As `Actor.voter`."""
    key: str | None
    """The idempotency key, which jobs of several types may have."""
    since: datetime | None
    before: int | None
    limit: int


@dataclass(frozen=True, slots=True)
class JobPage:
    """Jobs, newest first."""

    jobs: list[JobSummary]
    scanned_to: int | None = None
    """Job number where the scan stopped before the page was full.

    Pass it as `before` to continue. None: there are no more jobs, or the page is full and ends with
    its last job.
    """


async def read_page(db: Database, filters: JobFilters) -> JobPage:
    """Return jobs, newest first, with a number below `before`.

    With a filter that no index has, a call scans at most 100,000 numbers.
    """
    statuses = filters.get("statuses")
    scanned = {name: filters.get(name) or None for name in SCANNED}
    since, before = filters.get("since"), filters.get("before")
    limit = filters.get("limit", PAGE_LIMIT)
    params: dict[str, Any] = {**scanned, "since": since, "limit": limit}
    params["statuses"] = [str(item) for item in (Status if statuses is None else statuses)]
    if scanned["tags"] is not None:
        params["tags"] = list(filters["tags"])
    async with db.connection() as conn:
        if (key := filters.get("key")) is not None:
            jobs: list[JobSummary] = []
            for number in await store.of_idempotency_key(conn, key, limit):
                if before is None or number < before:
                    bounds = {"lowest": number, "before": number + 1}
                    jobs += await store.page(conn, params | bounds)
            return JobPage(jobs)
        end = await store.newest(conn) + 1 if before is None else before
        first = 0 if since is None else await store.first_since(conn, since)
        lowest = max(first, end - SCAN_LIMIT) if any(scanned.values()) else first
        jobs = await store.page(conn, params | {"before": end, "lowest": lowest})
    return JobPage(jobs, lowest if len(jobs) < limit and lowest > max(first, 1) else None)
