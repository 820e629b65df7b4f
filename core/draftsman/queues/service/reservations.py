"""Reservations of queues: direct execution of a job before all others of its queue."""

from __future__ import annotations

from typing import Final

from draftsman.database.database import Connection, Database, on_connection
from draftsman.durations import format_duration
from draftsman.errors import CommandHint, Refused, UsageError
from draftsman.ids import account_name, job_name
from draftsman.jobs.requests.invocation import Invocation
from draftsman.jobs.requests.service.submissions import Submissions, SubmittedJob
from draftsman.people.actor import Actor
from draftsman.people.policy import Policy, Verb
from draftsman.queues import store
from draftsman.queues.queue_models import (
    DEFAULT_SECONDS,
    MAX_SECONDS,
    MIN_SECONDS,
    QueueReservation,
    reservation_text,
)
from draftsman.queues.usage_limits import bucket_title

NOT_SUBMITTED: Final = "no job was submitted"


class Reservations:
    """Jobs that reserve their queue.

    While a queue is reserved, workers claim only the reserving job from it; running jobs continue.
    A reservation ends with its job, when the job waits for a person or for its start time, when it
    expires, and when an operator releases the queue.
    """

    def __init__(self, db: Database, policy: Policy, submissions: Submissions) -> None:
        self._db = db
        self._policy = policy
        self._submissions = submissions

    async def submit(
        self, invocation: Invocation, actor: Actor, seconds: float = DEFAULT_SECONDS
    ) -> tuple[SubmittedJob, QueueReservation | None]:
        """Create the job of this invocation and reserve its queue, in one transaction.

        A job that existed before the request reserves nothing. Raises NotPermitted for a person who
        is not an operator, Refused where the queue is reserved or paused or the job is held by its
        concurrency key, and errors as of `Submissions.submit`.
        """
        account = self._policy.resolve(actor)
        self._policy.check(account, Verb.RESERVE)
        if not MIN_SECONDS <= seconds <= MAX_SECONDS:
            allowed = f"{format_duration(MIN_SECONDS)} to {format_duration(MAX_SECONDS)}"
            raise UsageError(
                f"a queue can be reserved for {allowed}, not for {format_duration(seconds)}"
            )
        if invocation.run_at is not None or invocation.delay is not None:
            raise UsageError("a job that starts later cannot reserve its queue now")
        if invocation.unique is not None and invocation.unique.debounce is not None:
            raise UsageError("a debounced job starts later and cannot reserve its queue now")

        async def work(conn: Connection) -> SubmittedJob:
            (job,) = await self._submissions.submit_many([invocation], actor, connection=conn)
            if job.outcome == "created":
                if job.warning is not None:
                    raise Refused(f"{job.warning}; it cannot reserve its queue; {NOT_SUBMITTED}")
                _check(await store.reserve(conn, job.number, seconds, account.name), job)
            return job

        job = await self._db.run_transaction(work)
        return job, await self.of_job(job.number)

    async def of_job(self, job: int) -> QueueReservation | None:
        """Return the current reservation for a job."""
        return next((item for item in await self.all() if item.job == job), None)

    all = on_connection(store.reservations)


def _check(result: store.ReserveOutcome, job: SubmittedJob) -> None:
    """Raise Refused unless the queue was reserved."""
    refused = NOT_SUBMITTED
    if result.outcome == "taken" and result.holder:
        text = reservation_text(result.queue, result.holder, result.by or "", result.until)
        raise Refused(
            f"{text}; {refused}",
            hint=CommandHint("queues release", result.queue, lead="to end the reservation"),
        )
    if result.outcome == "paused":
        by = account_name(result.by or "")
        raise Refused(
            f"the queue {result.queue!r} is paused by {by}: {result.reason}; {refused}",
            hint=CommandHint("queues list"),
        )
    if result.outcome == "held" and result.reason is None:
        raise Refused(f"a limit or another job would hold the job now; {refused}")
    if result.outcome == "held":
        holder = f"{job_name(result.holder)} holds" if result.holder else "another job holds"
        raise Refused(f"{holder} the concurrency key {result.reason!r}; {refused}")
    if result.outcome == "limited":
        title = bucket_title(result.reason or "")
        raise Refused(
            f"no place is free in the limit of {title}; {refused}", hint=CommandHint("limits")
        )
    if result.outcome != "reserved":
        raise Refused("is not queued and cannot reserve its queue", subject=job.name)
