"""Insertion of requests: new jobs, and what requests add to the jobs that they join."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from draftsman.database.database import Connection
from draftsman.deliveries.store import deliveries
from draftsman.deliveries.target import Target
from draftsman.errors import NotPermitted
from draftsman.jobs.job import Status
from draftsman.jobs.requests.invocation import Invocation, SubmitResult, Unique
from draftsman.jobs.requests.store import attachments
from draftsman.jobs.requests.store import submissions as store
from draftsman.jobs.requests.store.submissions import RepeatedJob
from draftsman.jobs.runs.store import jobs
from draftsman.jobs.runs.store.jobs import LockedJob
from draftsman.people.actor import Actor
from draftsman.people.policy import Policy, Verb

MAX_JOINED_TEXT: Final = 3000
"""Maximum length of the stored text of a request that joined an active job, in characters."""
NOT_STARTED: Final = frozenset({Status.SCHEDULED, Status.QUEUED})
REPLACED: Final = "replaced by a newer request"


@dataclass(slots=True)
class NewRequest:
    """A request on its way through the steps of a submission, which fill it in."""

    invocation: Invocation
    account: Actor
    """The actor, with person and roles."""
    actor: str
    """The name of the actor."""
    payloads: Sequence[dict[str, Any]] = ()
    """The payloads of its jobs; empty for a single job with that of the invocation."""
    columns: dict[str, Any] = field(default_factory=dict)
    """The values of the columns of its job."""
    targets: Sequence[Target] = ()
    files: Sequence[dict[str, Any]] = ()
    """The rows of its attachments."""
    warning: str | None = None
    """Why its job may wait for long."""


async def insert(
    conn: Connection, batch: Sequence[NewRequest], indexes: Sequence[int], policy: Policy
) -> dict[int, SubmitResult]:
    """Insert these requests of a batch in the transaction of the caller.

    Requests that other transactions are committing are left out. Each actor has a statement. Actors
    are in sorted order, like the keys of a statement, so that two batches cannot deadlock.
    """
    by_actor: dict[str, list[int]] = {}
    for index in indexes:
        by_actor.setdefault(batch[index].actor, []).append(index)
    await _lock_unique_keys(conn, [batch[index] for index in indexes])
    results: dict[int, SubmitResult] = {}
    for actor, of_actor in sorted(by_actor.items()):
        results |= await _insert_plain(conn, batch, of_actor, actor)
        for index in of_actor:
            unique = batch[index].invocation.unique
            key = batch[index].invocation.unique_key
            if unique is None or key is None:
                continue
            result = await _insert_unique(conn, batch[index], unique, key, policy)
            if result is not None:
                results[index] = result
        await _record_joined(conn, batch, of_actor, actor, results)
    await _add_targets_of_joined(conn, batch, results)
    await _add_files(conn, batch, results)
    return results


async def _lock_unique_keys(conn: Connection, requests: Sequence[NewRequest]) -> None:
    """Lock the keys of unique requests, with the subjects of all, in a common order."""
    keys = [request.invocation.unique_key for request in requests if request.invocation.unique]
    if keys:
        subjects = [request.columns["subject_key"] for request in requests]
        await store.lock_subjects(conn, [*keys, *subjects])


async def _insert_plain(
    conn: Connection, batch: Sequence[NewRequest], indexes: Sequence[int], actor: str
) -> dict[int, SubmitResult]:
    """Insert the requests of an actor together, except unique requests."""
    plain = [index for index in indexes if batch[index].invocation.unique is None]
    if not plain:
        return {}
    columns = [batch[index].columns for index in plain]
    targets = [batch[index].targets for index in plain]
    inserted = await store.submit(conn, columns, actor, targets)
    return {plain[result.place]: result for result in inserted}


async def _insert_unique(
    conn: Connection, request: NewRequest, unique: Unique, key: str, policy: Policy
) -> SubmitResult | None:
    """Insert a request whose key and subject are locked, or return the job that it joins."""
    existing = await _existing(conn, request)
    if existing is not None and existing.outcome == "deduplicated":
        return existing
    columns = request.columns
    replaced = None
    if (repeated := await _lock_repeated(conn, request, unique, key)) is not None:
        job, locked = repeated
        is_of_subject = existing is not None and existing.number != job.number
        if is_of_subject or _joins(request, unique, job, locked, policy):
            return existing or SubmitResult(
                place=0,
                number=job.number,
                id=job.id,
                status=locked.status,
                request_digest=job.request_digest,
                outcome="joined",
            )
        if _is_pending(locked):
            await jobs.cancel_now(conn, job.number, request.actor, REPLACED)
            replaced = job.number
            if unique.debounce is not None and job.debounce_left is not None:
                columns = columns | {"delay": min(unique.debounce, job.debounce_left)}
    for result in await store.submit(conn, [columns], request.actor, [request.targets]):
        if result.outcome == "created":
            await store.keep_unique_key(
                conn,
                job=result.number,
                key=key,
                replaces=replaced,
                debounce_limit=unique.longest_debounce,
            )
        return result._replace(replaced=replaced)
    return None


async def _existing(conn: Connection, request: NewRequest) -> SubmitResult | None:
    """Return the existing job of a request: of its key, else of its subject."""
    for result in await store.existing(conn, [request.columns], [0]):
        return result
    return None


async def _lock_repeated(
    conn: Connection, request: NewRequest, unique: Unique, key: str
) -> tuple[RepeatedJob, LockedJob] | None:
    """Lock the job that a request repeats; a job that finished meanwhile may not be repeated."""
    while (job := await _repeated(conn, request, unique, key)) is not None:
        locked = await jobs.lock_to_cancel(conn, job.number)
        if locked is not None and locked.status == job.status:
            return job, locked
    return None


async def _repeated(
    conn: Connection, request: NewRequest, unique: Unique, key: str
) -> RepeatedJob | None:
    """Return the newest job with the unique key, else an unfinished job of the subject.

    The latter was submitted without such a condition, and has no unique key.
    """
    if (job := await store.repeated(conn, key, unique)) is not None:
        return job
    if request.invocation.unique_by != "subject":
        return None
    same = await _existing(conn, request)
    if same is None:
        return None
    return RepeatedJob(
        number=same.number,
        id=same.id,
        status=same.status,
        request_digest=same.request_digest,
        debounce_left=None,
    )


def _joins(
    request: NewRequest, unique: Unique, job: RepeatedJob, locked: LockedJob, policy: Policy
) -> bool:
    """Return whether a request joins the job that it repeats; otherwise it gets a new job.

    A job that the actor may not cancel is joined instead of replaced, and so is a debounced job
    that was postponed up to its limit.
    """
    if not _is_pending(locked):
        return unique.debounce is None
    if not unique.newest_wins or not _may_cancel(request.account, locked, policy):
        return True
    return unique.debounce is not None and job.debounce_left is not None and job.debounce_left <= 0


def _is_pending(job: LockedJob) -> bool:
    return job.status in NOT_STARTED and not job.run_count


def _may_cancel(account: Actor, job: LockedJob, policy: Policy) -> bool:
    try:
        policy.check(account, Verb.CANCEL, invoker=job.invoker_id)
    except NotPermitted:
        return False
    return True


async def _record_joined(
    conn: Connection,
    batch: Sequence[NewRequest],
    indexes: Sequence[int],
    actor: str,
    results: Mapping[int, SubmitResult],
) -> None:
    """Add an event to the active job of each request of an actor that joined one."""
    joined = [
        (results[index].number, _joined_payload(batch[index]))
        for index in indexes
        if index in results and results[index].outcome == "joined"
    ]
    if joined:
        await store.join(conn, joined, actor)


def _joined_payload(request: NewRequest) -> dict[str, Any]:
    """Return the payload of the event of a request that joined an active job."""
    columns = request.columns
    text = columns["ticket_text"]
    payload = {
        "requester": columns["invoker_id"],
        "name": columns["invoker_display_name"],
        "source": columns["source"],
        "title": columns["ticket_title"],
        "text": text[:MAX_JOINED_TEXT] if text else None,
        "url": columns["ticket_url"],
        "key": columns["idempotency_key"],
        "digest": columns["request_digest"],
        "after": request.invocation.parent_names,
    }
    return {name: value for name, value in payload.items() if value}


async def _add_targets_of_joined(
    conn: Connection, batch: Sequence[NewRequest], results: Mapping[int, SubmitResult]
) -> None:
    """Add the targets of requests that joined a job; a new job has those of its request."""
    targets = [
        (result.number, batch[index].targets)
        for index, result in results.items()
        if result.outcome == "joined" and batch[index].targets
    ]
    if targets:
        created = {result.number for result in results.values() if result.outcome == "created"}
        await deliveries.add_targets(conn, targets, created)


async def _add_files(
    conn: Connection, batch: Sequence[NewRequest], results: Mapping[int, SubmitResult]
) -> None:
    """Add the files of requests that created or joined a job."""
    for index, result in results.items():
        request = batch[index]
        if request.files and result.outcome in ("created", "joined"):
            await attachments.add(
                conn, job=result.number, actor=request.actor, files=request.files, message=None
            )
