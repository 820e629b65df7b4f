"""Reading of everything that people see of a job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from draftsman.attention import store as attention
from draftsman.database.database import Connection
from draftsman.deliveries.service.outbox import LATE
from draftsman.deliveries.store import deliveries, delivery_claims
from draftsman.events import store as archives
from draftsman.events.event import Event
from draftsman.forges import store as forges
from draftsman.ids import unknown_job
from draftsman.jobs.control import store as control
from draftsman.jobs.details import store
from draftsman.jobs.details.job_details import INCOMPLETE, JOINED, MAX_STEPS, SANDBOX, JobDetails
from draftsman.jobs.details.service.waiting import wait_reason
from draftsman.jobs.job import Job, Source
from draftsman.jobs.job_summary import JobVersion, RetryLink
from draftsman.jobs.requests.attachments import PATIENCE
from draftsman.jobs.requests.store import attachments
from draftsman.jobs.runs.store import checkpoints, run_state
from draftsman.questions.question import QuestionStatus
from draftsman.questions.store import questions
from draftsman.workflows import store as workflows
from draftsman.workflows.dependencies import JobTree

if TYPE_CHECKING:
    from draftsman.schedules.schedule import Fire

DELIVERIES: Final = 200
"""Newest deliveries that are read."""
TREE_JOBS: Final = 500
"""Jobs of a tree that are read."""


async def read(
    conn: Connection, number: int, *, lease: float, events: int, steps: int | None = None
) -> JobDetails:
    """Read a job in the transaction of the caller; raises NotFound.

    A part is read only if the job has it. `events` and `steps` are how many of the newest.
    """
    record = await store.details(conn, number, lease)
    if record is None:
        raise unknown_job(number)
    parts = record.parts
    job = replace(record.job, payload=_as_declared(record.job.payload, parts.parameters))
    most_steps = MAX_STEPS + 1 if steps is None else steps
    all_questions = await questions.of_job(conn, number) if parts.has_questions else []
    is_asking = any(question.status is QuestionStatus.OPEN for question in all_questions)
    newest = (await store.latest_job_events(conn, number, 0, events + 1))[::-1]
    has_earlier = len(newest) > events
    newest = newest[-events:]
    sent = await deliveries.of_job(conn, number, None, DELIVERIES) if parts.has_deliveries else []
    is_due = any(delivery.next_attempt_at is not None for delivery in sent)
    jobs, total = (
        await workflows.tree_jobs(conn, number, TREE_JOBS) if parts.has_children else ([], 0)
    )
    parents = await workflows.parents(conn, number) if parts.has_parents else []
    groups = await workflows.groups(conn, 1, job=number) if parts.has_group else []
    is_chained = job.retry_of is not None or parts.has_retry
    return JobDetails(
        job=job,
        at=parts.at,
        version=JobVersion(job.status, job.version, record.facts.job_paused),
        wait_reason=await wait_reason(conn, record.facts, all_questions),
        runs=await run_state.runs(conn, number) if job.run_count else [],
        questions=all_questions,
        answers=await questions.answers(conn, number) if all_questions else [],
        open_questions=await questions.open_of(conn, [number]) if is_asking else [],
        attention=await attention.attention(conn, [number]) if is_asking else {},
        artifacts=await checkpoints.artifacts(conn, number) if parts.has_artifacts else [],
        steps=await checkpoints.step_summaries(conn, number, most_steps) if parts.has_steps else [],
        checkpoints=(
            await checkpoints.checkpoint_summaries(conn, number)
            if record.facts.has_checkpoint
            else []
        ),
        retry_chain=await store.chain(conn, number) if is_chained else [_alone(job)],
        replacement=record.replacement,
        archives=await archives.of_job(conn, number) if parts.has_archives else [],
        occurrence=await _occurrence(conn, number) if job.source == Source.SCHEDULE else None,
        tree=JobTree(parents, jobs, total, parts.spawned_by),
        group=next(iter(groups), None),
        messages=await control.messages_of_job(conn, number) if parts.has_messages else [],
        attachments=(
            await attachments.of_job(conn, number, PATIENCE) if parts.has_attachments else []
        ),
        family=await forges.family(conn, number) if parts.has_pull_request else None,
        targets=await deliveries.targets(conn, number) if parts.has_targets else [],
        deliveries=sent,
        unserved=await delivery_claims.unserved(conn, lease, LATE) if is_due else [],
        events=newest,
        has_earlier_events=has_earlier,
        earlier_events=await _earlier(conn, newest) if has_earlier else [],
    )


def _as_declared(payload: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return a payload in the order of its parameters, which the database does not keep."""
    declared = {name: payload[name] for name in names if name in payload}
    return declared | {name: value for name, value in payload.items() if name not in declared}


def _alone(job: Job) -> RetryLink:
    """Return the chain of a job without retries."""
    return RetryLink(
        job.number, job.status, job.retry_of, job.chain_length, job.last_error, job.error_class
    )


async def _occurrence(conn: Connection, number: int) -> Fire | None:
    """Read the occurrence of a schedule; only its jobs pay for the models of templates."""
    from draftsman.schedules import store as schedules

    return await schedules.of_job(conn, number)


async def _earlier(conn: Connection, newest: Sequence[Event]) -> list[Event]:
    """Return the events before the newest of which the details show something."""
    first = newest[0]
    found = await store.job_events_of_kinds(conn, first.job, (JOINED, SANDBOX, INCOMPLETE))
    return [event for event in reversed(found) if event.id < first.id]
