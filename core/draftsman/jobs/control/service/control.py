"""Job control: cancel, pause, retry and messages to jobs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from draftsman.database.database import Connection, Database
from draftsman.deliveries.store import deliveries
from draftsman.errors import CommandHint, LostRace, OptionHint, Refused, UsageError
from draftsman.ids import job_name, new_id, unknown_job
from draftsman.jobs.control import store
from draftsman.jobs.fits import (
    CANCELABLE,
    DISMISSABLE,
    PAUSABLE,
    RETRYABLE,
    UNDISMISSABLE,
    Fit,
    not_open,
)
from draftsman.jobs.job import Status
from draftsman.jobs.job_summary import Dismissal
from draftsman.jobs.requests.store import attachments
from draftsman.jobs.retries import CHAIN_LIMIT
from draftsman.jobs.runs.store import jobs
from draftsman.jobs.runs.store import jobs as all_jobs
from draftsman.jobs.runs.store.jobs import LockedJob
from draftsman.people.actor import Actor
from draftsman.people.policy import Policy, Verb
from draftsman.text import clean
from draftsman.tracing.tracer import TRACEPARENT, active
from draftsman.workflows import store as workflows
from draftsman.workflows.groups import group_ended
from draftsman.workflows.service import groups as job_groups
from draftsman.workflows.service.retried_trees import link_retry

if TYPE_CHECKING:
    from draftsman.jobs.requests.invocation import SubmitResult
    from draftsman.jobs.requests.service.submissions import SubmittedJob

AGAIN_OPTION = OptionHint("again", lead="to run it again use")
"""Hint at the option that retries a completed job."""
REASON_LIMIT = 2000
"""Maximum length of a stored reason, in characters."""
INHERITED: Final = (
    "type",
    "queue",
    "priority",
    "subject_key",
    "concurrency_key",
    "mode",
    "source_type",
    "external_event_id",
    "repo_host",
    "repo_owner",
    "repo_name",
    "ticket_url",
    "ticket_title",
    "ticket_text",
    "payload",
    "overrides",
    "requested_skills",
    "tags",
    "agent",
    "template",
    "template_version",
    "max_attempts",
    "max_retries",
    "on_lost",
    "request_digest",
)


@dataclass(frozen=True, slots=True)
class CancelResult:
    """The result of a cancel: `status` is canceled, or running until the worker stops the run."""

    number: int
    status: Status
    requested: bool


@dataclass(frozen=True, slots=True)
class PauseResult:
    """The result of a pause or its end: `status` is that of the job before its worker stops it."""

    number: int
    status: Status


@dataclass(frozen=True, slots=True)
class DismissResult:
    """The result of a dismissal or its end: `dismissal` is None when it was taken back.

    `changed` is False if the failure had been dismissed before, by whom and why as stored.
    """

    number: int
    status: Status
    dismissal: Dismissal | None
    changed: bool = True


class JobControl:
    """Cancellation, pause and retry of jobs."""

    def __init__(self, db: Database, policy: Policy) -> None:
        self._db = db
        self._policy = policy

    async def cancel(
        self, job: int, actor: Actor, reason: str | None = None, *, force: bool = False
    ) -> CancelResult:
        """End a job at once, or through its worker if it is running and not `force`.

        Raises NotFound, NotPermitted, and Refused where the job has finished.
        """
        actor = self._policy.resolve(actor)

        async def work(conn: Connection) -> CancelResult:
            return await self.cancel_in(conn, job, actor, reason, force=force)

        return await self._db.run_transaction(work)

    async def cancel_in(
        self, conn: Connection, job: int, actor: Actor, reason: str | None, *, force: bool
    ) -> CancelResult:
        """Cancel a job, as `cancel` does, in a transaction of the caller."""
        reason = clean(reason)[:REASON_LIMIT] if reason else None
        locked = await self._lock_cancelable(conn, job, actor)
        if locked.status is Status.RUNNING and not force:
            await jobs.request_cancel(conn, job, actor.name, reason)
            return CancelResult(job, Status.RUNNING, requested=True)
        await jobs.cancel_now(conn, job, actor.name, reason)
        return CancelResult(job, Status.CANCELED, requested=False)

    async def check_cancelable(self, conn: Connection, job: int, actor: Actor) -> None:
        """Lock a job, and raise as `cancel` does if the actor cannot cancel it."""
        await self._lock_cancelable(conn, job, actor)

    async def _lock_cancelable(self, conn: Connection, job: int, actor: Actor) -> LockedJob:
        locked = await jobs.lock_to_cancel(conn, job)
        if locked is None:
            raise unknown_job(job)
        self._policy.check(actor, Verb.CANCEL, invoker=locked.invoker_id)
        CANCELABLE.check(job_name(job), locked.status)
        return locked

    async def cancel_tree(
        self, job: int, actor: Actor, reason: str | None = None
    ) -> list[CancelResult]:
        """End a job and all that wait for it, directly or not, in a transaction.

        Running jobs end through their workers. Raises NotFound, NotPermitted if the actor may not
        cancel each of them, and Refused if none is left.
        """

        async def find(conn: Connection) -> tuple[int, Sequence[str]]:
            if await all_jobs.missing(conn, [job]) is not None:
                raise unknown_job(job)
            return job, await workflows.tree_invokers(conn, job)

        ended = Refused("and all that wait for it have ended", subject=job_name(job))
        return await self._cancel_all(find, workflows.cancel_tree, ended, actor, reason)

    async def cancel_group(
        self, name: str, actor: Actor, reason: str | None = None
    ) -> list[CancelResult]:
        """End the unfinished jobs of a group in a transaction; jobs added later are canceled too.

        Running jobs end through their workers. Raises NotFound, NotPermitted if the actor may not
        cancel each of them, and Refused if all have ended.
        """

        async def find(conn: Connection) -> tuple[int, Sequence[str]]:
            group = await job_groups.get(conn, name)
            return group.id, group.invokers

        return await self._cancel_all(
            find, workflows.cancel_group, group_ended(name), actor, reason
        )

    async def _cancel_all(
        self,
        find: Callable[[Connection], Awaitable[tuple[int, Sequence[str]]]],
        cancel: Callable[[Connection, int, str, str | None], Awaitable[Sequence[tuple[int, bool]]]],
        ended: Refused,
        actor: Actor,
        reason: str | None,
    ) -> list[CancelResult]:
        """Cancel the tree or group that `find` returns with the invokers of its unfinished jobs."""
        actor = self._policy.resolve(actor)
        reason = clean(reason)[:REASON_LIMIT] if reason else None

        async def work(conn: Connection) -> list[CancelResult]:
            id, invokers = await find(conn)
            for invoker in invokers:
                self._policy.check(actor, Verb.CANCEL, invoker=invoker)
            canceled = await cancel(conn, id, actor.name, reason)
            if not canceled:
                raise ended
            return [
                CancelResult(n, Status.RUNNING if requested else Status.CANCELED, requested)
                for n, requested in canceled
            ]

        return await self._db.run_transaction(work)

    async def pause(
        self, job: int, actor: Actor, reason: str, *, event: str | None = None
    ) -> PauseResult:
        """Pause a job: no worker claims it, and a running job is parked at its checkpoint.

        An `event` of a channel, such as a comment, pauses a job once, also if it arrives again.
        Raises NotFound, NotPermitted, UsageError without a reason, and Refused where the job has
        finished, is being canceled or is already paused.
        """
        reason = clean(reason).strip()[:REASON_LIMIT]
        if not reason:
            raise UsageError("a pause needs a reason, which `why` shows")

        async def change(conn: Connection, locked: LockedJob, actor: Actor) -> bool:
            _check_pausable(locked)
            return await store.pause(conn, job, actor.name, reason, event)

        return await self._change_pause(job, actor, change, "is already paused", event)

    async def check_pause(self, job: int, actor: Actor) -> None:
        """Raise the errors of `pause`, before a reason is asked for."""

        async def change(conn: Connection, locked: LockedJob, actor: Actor) -> bool:
            _check_pausable(locked)
            return await store.paused(conn, job + 1, 1) != [job]

        await self._change_pause(job, actor, change, "is already paused")

    async def resume(self, job: int, actor: Actor, *, event: str | None = None) -> PauseResult:
        """End the pause of a job, which continues from its checkpoint; raises as `pause` does."""

        async def change(conn: Connection, locked: LockedJob, actor: Actor) -> bool:
            return await store.unpause(conn, job, actor.name, event)

        return await self._change_pause(job, actor, change, "is not paused", event)

    async def _change_pause(
        self,
        job: int,
        actor: Actor,
        change: Callable[[Connection, LockedJob, Actor], Awaitable[bool]],
        refusal: str,
        event: str | None = None,
    ) -> PauseResult:
        actor = self._policy.resolve(actor)

        async def work(conn: Connection) -> PauseResult:
            locked = await jobs.lock_to_cancel(conn, job)
            if locked is None:
                raise unknown_job(job)
            self._policy.check(actor, Verb.PAUSE, invoker=locked.invoker_id)
            if event is not None and await store.has_control_event(conn, job, event):
                return PauseResult(job, locked.status)
            if not await change(conn, locked, actor):
                raise Refused(
                    refusal, subject=job_name(job), hint=CommandHint("why", job_name(job))
                )
            return PauseResult(job, locked.status)

        return await self._db.run_transaction(work)

    async def dismiss(
        self, job: int, actor: Actor, reason: str | None = None, *, event: str | None = None
    ) -> DismissResult:
        """Take an open failure out of attention; a dismissed failure stays as it is.

        An `event` of a channel dismisses a job once, also if it arrives again. Raises NotFound,
        NotPermitted, and Refused for a job that did not fail, was denied or was retried.
        """
        reason = (clean(reason).strip()[:REASON_LIMIT] if reason else None) or None

        async def work(conn: Connection) -> DismissResult:
            locked, by = await self._lock_failure(conn, job, actor, DISMISSABLE)
            repeated = event is not None and await store.has_control_event(conn, job, event)
            changed = repeated or await store.dismiss(conn, job, by.name, reason, event)
            dismissal = await store.dismissal(conn, job)
            if dismissal is None and not repeated:
                retry = (await store.retries(conn, [job])).get(job)
                raise Refused(not_open(retry, None, denied=True), subject=job_name(job))
            return DismissResult(job, locked.status, dismissal, changed)

        return await self._db.run_transaction(work)

    async def undismiss(self, job: int, actor: Actor, *, event: str | None = None) -> DismissResult:
        """Take a dismissal back, so that the failure counts again unless it was retried.

        Raises as `dismiss` does, and Refused for a failure that is not dismissed.
        """

        async def work(conn: Connection) -> DismissResult:
            locked, by = await self._lock_failure(conn, job, actor, UNDISMISSABLE)
            if event is not None and await store.has_control_event(conn, job, event):
                return DismissResult(job, locked.status, await store.dismissal(conn, job), False)
            if not await store.undismiss(conn, job, by.name, event):
                raise Refused("is not dismissed", subject=job_name(job))
            return DismissResult(job, locked.status, None)

        return await self._db.run_transaction(work)

    async def _lock_failure(
        self, conn: Connection, job: int, actor: Actor, fit: Fit
    ) -> tuple[LockedJob, Actor]:
        actor = self._policy.resolve(actor)
        locked = await jobs.lock_to_cancel(conn, job)
        if locked is None:
            raise unknown_job(job)
        self._policy.check(actor, Verb.DISMISS, invoker=locked.invoker_id)
        fit.check(job_name(job), locked.status)
        return locked, actor

    async def refuse(self, job: int, action: str, event: str, actor: Actor, reason: str) -> None:
        """Record a denied attempt to `cancel`, `retry` or `dismiss` a job.

        `event` identifies the attempt: each is recorded once. Raises NotFound.
        """
        detail = {"action": action, "event": event, "reason": reason[:REASON_LIMIT]}

        async def work(conn: Connection) -> None:
            if await jobs.lock_to_cancel(conn, job) is None:
                raise unknown_job(job)
            await store.refuse(conn, job, actor.name, detail)

        await self._db.run_transaction(work)

    async def retry(
        self,
        job: int,
        actor: Actor,
        *,
        fresh: bool = False,
        again: bool = False,
        with_answer: bool = False,
        alone: bool = False,
    ) -> SubmittedJob:
        """Retry a finished job, once: a second call returns the first retry.

        The jobs that were skipped because of it are retried with it, unless `alone`.

        The new job inherits the request and, unless `fresh`, the newest checkpoint and work bundle.
        Answers are not inherited; `with_answer` passes on the answer that arrived late. Raises
        NotFound, NotPermitted, and Refused (not finished; completed without `again`; no late
        answer).
        """
        actor = self._policy.resolve(actor)

        async def work(conn: Connection) -> SubmittedJob:
            locked = await jobs.lock_to_cancel(conn, job)
            if locked is None:
                raise unknown_job(job)
            self._policy.check(actor, Verb.RETRY, invoker=locked.invoker_id)
            RETRYABLE.check(job_name(job), locked.status)
            if locked.status is Status.COMPLETED and not again:
                raise Refused("completed", subject=job_name(job), hint=AGAIN_OPTION)
            late = await self._late_answer(conn, job) if with_answer else {}
            new = await insert_retry(conn, job, actor, late, alone=alone, policy=self._policy)
            if new.outcome == "created" and not fresh:
                await store.copy_checkpoint(conn, job, new.number)
            return new

        return await self._db.run_transaction(work)

    async def _late_answer(self, conn: Connection, job: int) -> dict[str, str]:
        late = await store.late_answer(conn, job)
        if late is None:
            raise Refused(f"{job_name(job)} has no late answer; retry it without an answer")
        return {late[0]: late[1]}


async def insert_retry(
    conn: Connection,
    job: int,
    actor: Actor,
    answers: Mapping[str, str] | None = None,
    *,
    alone: bool = False,
    policy: Policy | None = None,
) -> SubmittedJob:
    """Insert the single retry of a job that the caller has locked, and of those skipped with it.

    `answers`, by question key, are given in the actor's name when the new job asks. Raises Refused
    when the chain is too long, or another job is active for the same subject, and NotPermitted
    if the actor may not retry a job that was skipped.
    """
    parents = await workflows.parents(conn, job)
    new = await _insert_single_retry(conn, job, actor, answers, held=bool(parents))

    async def insert(skipped: int, held: bool) -> int | None:
        locked = await jobs.lock_to_cancel(conn, skipped)
        if locked is not None and policy is not None:
            policy.check(actor, Verb.RETRY, invoker=locked.invoker_id)
        retried = await _insert_single_retry(conn, skipped, actor, None, held=held)
        return retried.number if retried.outcome == "created" else None

    if new.outcome == "created":
        await link_retry(conn, job, new.number, None if alone else insert)
    return new


async def _insert_single_retry(
    conn: Connection, job: int, actor: Actor, answers: Mapping[str, str] | None, *, held: bool
) -> SubmittedJob:
    """Insert the retry of a job; `held` if it waits for parents."""
    from draftsman.jobs.requests.service.submissions import SubmittedJob

    request = await store.request_columns(conn, job)
    if request is None:
        raise unknown_job(job)
    old, root = request
    length = int(old["chain_length"]) + 1
    if length > CHAIN_LIMIT:
        raise Refused(
            f"was already retried {CHAIN_LIMIT} times, the maximum; submit a new request",
            subject=job_name(job),
        )
    row: dict[str, Any] = {key: old[key] for key in INHERITED} | {
        "id": new_id(),
        "idempotency_key": f"retry:{root}:{length}",
        "source": actor.channel,
        "invoker_id": actor.voter,
        "invoker_display_name": actor.display_name,
        "retry_of": job,
        "chain_length": length,
        "has_targets": old["has_targets"],
        "hold": "parents" if held else None,
    }
    if answers:
        inherited = old["overrides"].get("answers")
        previous = inherited if isinstance(inherited, dict) else {}
        row["overrides"] = {**old["overrides"], "answers": {**previous, **answers}}
    submitted = await insert_row(conn, row, actor)
    if submitted.outcome == "deduplicated" and submitted.request_digest != old["request_digest"]:
        raise Refused(
            "already uses the idempotency key of this retry", subject=job_name(submitted.number)
        )
    if submitted.outcome == "joined":
        raise Refused(
            "is active for the same subject; cancel it first, or let it finish",
            subject=job_name(submitted.number),
        )
    if submitted.outcome == "created":
        await store.inherit_messages(conn, job, submitted.number)
        await attachments.inherit(conn, job, submitted.number)
        if old["has_targets"]:
            await deliveries.inherit_targets(conn, job, submitted.number)
    return SubmittedJob(submitted.number, submitted.id, submitted.status, submitted.outcome)


async def insert_row(conn: Connection, row: dict[str, Any], actor: Actor) -> SubmitResult:
    """Insert a request; repeat while a concurrent duplicate is being committed."""
    from draftsman.jobs.requests.service.submission_trace import TracedSubmission
    from draftsman.jobs.requests.service.submissions import SUBMIT_ATTEMPTS
    from draftsman.jobs.requests.store import submissions as requests

    trace = TracedSubmission(active())
    for _ in range(SUBMIT_ATTEMPTS):
        if submitted := await requests.submit(conn, [row], actor.name):
            if submitted[0].outcome == "created" and TRACEPARENT not in row["overrides"]:
                trace.created(submitted[0].id, submitted[0].number, row["type"], row["queue"])
            return submitted[0]
    raise LostRace("another request for the same subject is being committed; try again")


def _check_pausable(locked: LockedJob) -> None:
    name = job_name(locked.number)
    PAUSABLE.check(name, locked.status)
    if locked.canceling:
        raise Refused("is being canceled; nothing to pause", subject=name)
