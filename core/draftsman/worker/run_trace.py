"""Spans of runs, of their wait for a worker, and of the questions that they asked."""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from draftsman.errors import Failure
from draftsman.ids import job_name
from draftsman.jobs.runs.run import ClaimedJob
from draftsman.questions.question import Question, QuestionStatus
from draftsman.tracing.tracer import (
    TRACEPARENT,
    Attributes,
    Kind,
    Span,
    SpanContext,
    Tracer,
    run_span_id,
    submission_of,
)

OUTCOME: Final = "draftsman.outcome"
WORKER_LOST: Final = "worker_lost"


class LostRun(NamedTuple):
    """A run whose worker has died before it could record it."""

    job: int
    run: int
    id: UUID
    """The id of the job."""
    traceparent: str | None
    type: str
    queue: str
    started_at: datetime
    finished_at: datetime


def begin_run(tracer: Tracer, job: ClaimedJob) -> Span:
    """Record the wait of a job for this worker, and begin the span of its run."""
    parent = _submission(job)
    attributes = _attributes(job.number, job.type, job.queue)
    if job.waited is not None:
        now = time.time()
        tracer.record("queue", attributes, parent=parent, began=now - job.waited, ended=now)
    return tracer.start(
        f"run {job.type}",
        Kind.CONSUMER,
        {**attributes, "draftsman.run": job.run},
        parent=parent,
        id=run_span_id(job.id, job.run),
    )


def end_run(span: Span, outcome: str, failure: Failure | None) -> None:
    """End the span of a run."""
    span.set({OUTCOME: outcome})
    if failure is not None:
        span.fail(failure.code or type(failure).__name__, str(failure))
    span.end()


def record_questions(tracer: Tracer, job: ClaimedJob, questions: Iterable[Question]) -> None:
    """Record how long people took for the questions of the run before this one."""
    submission = _submission(job)
    resumed = time.time() - (job.waited or 0.0)
    for question in questions:
        if question.run != job.run - 1 or question.status is QuestionStatus.OPEN:
            continue
        asked_by = submission._replace(span_id=run_span_id(job.id, question.run))
        closed = question.answered_at
        tracer.record(
            "question",
            {
                **_attributes(job.number, job.type, job.queue),
                "draftsman.question": question.name,
                "draftsman.question.key": question.key,
                "draftsman.question.kind": question.kind,
                OUTCOME: question.status,
                "draftsman.question.via": (question.resolution or {}).get("via"),
            },
            parent=asked_by,
            began=question.asked_at.timestamp(),
            ended=resumed if closed is None else closed.timestamp(),
        )


def record_lost_run(tracer: Tracer, run: LostRun) -> None:
    """Record a run whose worker has died."""
    tracer.record(
        f"run {run.type}",
        {
            **_attributes(run.job, run.type, run.queue),
            "draftsman.run": run.run,
            OUTCOME: "lost",
        },
        parent=submission_of(run.id, run.traceparent),
        began=run.started_at.timestamp(),
        ended=run.finished_at.timestamp(),
        kind=Kind.CONSUMER,
        id=run_span_id(run.id, run.run),
        error=WORKER_LOST,
    )


def _submission(job: ClaimedJob) -> SpanContext:
    return submission_of(job.id, job.overrides.get(TRACEPARENT) if job.has_overrides else None)


def _attributes(number: int, type: str, queue: str) -> Attributes:
    return {
        "draftsman.job": job_name(number),
        "draftsman.job.type": type,
        "draftsman.queue": queue,
    }
