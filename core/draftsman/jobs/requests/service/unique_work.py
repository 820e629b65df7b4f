"""Submission of requests that may repeat an earlier job, which they then join or replace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from draftsman.database.database import Connection
from draftsman.deliveries.target import Target
from draftsman.errors import NotPermitted
from draftsman.jobs.job import Status
from draftsman.jobs.requests.invocation import Invocation, SubmitResult, Unique, UniqueBy
from draftsman.jobs.requests.store import submissions as store
from draftsman.jobs.requests.store.submissions import RepeatedJob
from draftsman.jobs.runs.store import locked_jobs
from draftsman.jobs.runs.store.locked_jobs import LockedJob
from draftsman.people.actor import Actor
from draftsman.people.policy import Policy, Verb

NOT_STARTED: Final = frozenset({Status.SCHEDULED, Status.QUEUED})
REPLACED: Final = "replaced by a newer request"


class UniqueRequest(NamedTuple):
    """What a request has in common with the jobs that it repeats, and who makes it."""

    unique: Unique
    by: UniqueBy
    key: str
    account: Actor
    policy: Policy

    def may_cancel(self, invoker: str) -> bool:
        """Return whether the account may cancel a job of this invoker."""
        try:
            self.policy.check(self.account, Verb.CANCEL, invoker=invoker)
        except NotPermitted:
            return False
        return True


def request_of(item: Invocation, account: Actor, policy: Policy) -> UniqueRequest | None:
    """Return the condition of a request; None if it gets a job of its own."""
    if item.unique is None or item.unique_by is None or item.unique_key is None:
        return None
    return UniqueRequest(item.unique, item.unique_by, item.unique_key, account, policy)


async def submit(
    conn: Connection,
    request: UniqueRequest,
    row: dict[str, Any],
    targets: Sequence[Target],
    actor: str,
) -> list[SubmitResult]:
    """Insert a request whose key and subject are locked, or return the job that it joins.

    A job that the actor may not cancel is joined instead of replaced, and so is a debounced job
    that was postponed up to its limit.
    """
    unique = request.unique
    same = await store.existing(conn, [row], [0])
    if same and same[0].outcome == "deduplicated":
        return same
    replaces = None
    if old := await _lock_repeated(conn, request, row):
        job, locked = old
        pending = locked.status in NOT_STARTED and not locked.run_count
        if pending:
            left = job.debounce_left if unique.debounce is not None else None
            joins = not (unique.newest_wins and request.may_cancel(locked.invoker_id))
            joins = joins or (left is not None and left <= 0)
            if left is not None and unique.debounce is not None:
                row = row | {"delay": min(unique.debounce, left)}
        else:
            joins = unique.debounce is None
        if joins or (same and same[0].number != job.number):
            return same or [
                SubmitResult(0, job.number, job.id, locked.status, job.request_digest, "joined")
            ]
        if pending:
            await locked_jobs.cancel_now(conn, job.number, actor, REPLACED)
            replaces = job.number
    results = await store.submit(conn, [row], actor, [targets])
    for result in results:
        if result.outcome == "created":
            limit = unique.longest_debounce
            await store.keep_unique_key(conn, result.number, request.key, replaces, limit)
    return [result._replace(replaced=replaces) for result in results]


async def _lock_repeated(
    conn: Connection, request: UniqueRequest, row: dict[str, Any]
) -> tuple[RepeatedJob, LockedJob] | None:
    """Lock the job that a request repeats; a job that finished meanwhile may not be repeated."""
    while (job := await _repeated(conn, request, row)) is not None:
        locked = await locked_jobs.lock(conn, job.number)
        if locked is not None and locked.status == job.status:
            return job, locked
    return None


async def _repeated(
    conn: Connection, request: UniqueRequest, row: dict[str, Any]
) -> RepeatedJob | None:
    """Return the newest job with the unique key, else an unfinished job of the subject.

    The latter was submitted without such a condition, and has no unique key.
    """
    if (job := await store.repeated(conn, request.key, request.unique)) is not None:
        return job
    if request.by != "subject":
        return None
    for same in await store.existing(conn, [row], [0]):
        return RepeatedJob(same.number, same.id, same.status, same.request_digest, None)
    return None
