"""Final state of a seed: each job with its events, answers, steps and effects."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from draftsman.errors import NotFound
from draftsman.jobs.job import TERMINAL, Status
from draftsman.runtime import Runtime
from draftsman_soak.external_effects import Effects, read_effects
from draftsman_soak.handlers import MARK
from draftsman_soak.ledger import Ledger, SubmittedAnswer, retry_until_reachable
from draftsman_soak.seed_config import PREFIX

AT_ONCE: Final = 4


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """A step: `pending` or `done`, and its recorded value."""

    key: str
    status: str
    invocation: str
    value: Any


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """A stored answer; `value` is its value, `approve` or `deny`."""

    question: int
    event: str
    value: str | None
    accepted: bool


@dataclass(frozen=True, slots=True)
class RecordedQuestion:
    """A question and its resolution."""

    ordinal: int
    key: str
    status: str
    outcome: str | None = None
    value: str | None = None
    by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RecordedEvent:
    """An event of a job; `at` is Unix time of the machine, without the shift of the clock."""

    kind: str
    at: float
    actor: str = "system"
    run: int | None = None
    to: str | None = None


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A job with its steps, questions, answers, events and effects."""

    number: int
    type: str
    status: str
    result: dict[str, Any] = field(default_factory=dict)
    error: str | None = None
    steps: tuple[RecordedStep, ...] = ()
    questions: tuple[RecordedQuestion, ...] = ()
    answers: tuple[RecordedAnswer, ...] = ()
    job_events: tuple[RecordedEvent, ...] = ()
    effects: Effects = field(default_factory=Effects)


@dataclass(frozen=True, slots=True)
class FinalState:
    """All jobs by number, and the violations that `doctor --invariants` reports."""

    jobs: dict[int, JobRecord] = field(default_factory=dict)
    broken: tuple[str, ...] = ()


async def read_final_state(runtime: Runtime, numbers: Iterable[int], outside: Path) -> FinalState:
    """Return the final state of jobs; missing jobs are left out."""
    gate = asyncio.Semaphore(AT_ONCE)
    jobs = dict[int, JobRecord]()

    async def read(number: int) -> None:
        async with gate:
            try:
                jobs[number] = await retry_until_reachable(
                    lambda: _read_job(runtime, number, outside)
                )
            except NotFound:
                return

    await asyncio.gather(*(read(number) for number in numbers))
    rows = await retry_until_reachable(lambda: runtime.read_model.invariants())
    broken = [
        f"{name}: D-{job}: {problem}"
        for name, violations in rows.items()
        for job, problem in violations
    ]
    return FinalState(jobs, tuple(broken))


async def _read_job(runtime: Runtime, number: int, outside: Path) -> JobRecord:
    job = await runtime.read_model.job(number)
    questions, answers = await runtime.questions.of_job(number)
    steps = await runtime.checkpoints.steps(number)
    return JobRecord(
        number,
        job.type,
        str(job.status),
        job.result or {},
        job.last_error,
        tuple(
            RecordedStep(step.key, step.status, step.invocation_id, step.result) for step in steps
        ),
        tuple(
            RecordedQuestion(
                question.ordinal,
                question.key,
                str(question.status),
                (question.resolution or {}).get("outcome"),
                (question.resolution or {}).get("value"),
                tuple((question.resolution or {}).get("by", ())),
            )
            for question in questions
        ),
        tuple(
            RecordedAnswer(
                answer.question,
                answer.source_event_id,
                _answer_value(answer.payload),
                answer.accepted,
            )
            for answer in answers
        ),
        await _read_events(runtime, number),
        await asyncio.to_thread(read_effects, outside, number),
    )


async def _read_events(runtime: Runtime, number: int) -> tuple[RecordedEvent, ...]:
    recorded: list[RecordedEvent] = []
    last = 0
    while events := await runtime.read_model.job_events(number, last):
        last = events[-1].id
        for event in events:
            at = event.created_at.timestamp()
            recorded.append(RecordedEvent(event.kind, at, event.actor, event.run, event.to_status))
    return tuple(recorded)


def _answer_value(payload: dict[str, Any]) -> str | None:
    return payload.get("value") or payload.get("decision") or payload.get("text")


# Comparison of acknowledged calls and external effects with the final state. Pure.
#
# Each finding is a line that names the job. Any finding fails the soak.


APPROVE = "approve"
DENY = "deny"
SLEEP: Final = "sleep:"
"""Prefix of the step keys of `ctx.sleep`, which have no external effect."""


@dataclass(frozen=True, slots=True)
class Violations:
    """Findings by guarantee."""

    doubled: tuple[str, ...] = ()
    """Effects created twice although they were recorded, or recorded with another value."""
    answers_lost: tuple[str, ...] = ()
    """Accepted answers that are missing or were not used by the handler."""
    jobs_lost: tuple[str, ...] = ()
    """Acknowledged requests without a job, or with several jobs."""
    stuck: tuple[str, ...] = ()
    """Jobs that did not end."""
    overlapping: tuple[str, ...] = ()
    """Jobs that two runs wrote to at the same time, by the order of their fenced writes."""
    stalled: tuple[str, ...] = ()
    """Transactions of a client during which no job made progress."""
    wrongly_ended: tuple[str, ...] = ()
    """Jobs with an unexpected final status, such as after a cancel without effect."""
    broken: tuple[str, ...] = ()
    """Violated invariants, and errors that no service should raise."""

    @property
    def findings(self) -> tuple[str, ...]:
        """All findings."""
        return (
            *self.doubled,
            *self.answers_lost,
            *self.jobs_lost,
            *self.stuck,
            *self.overlapping,
            *self.stalled,
            *self.wrongly_ended,
            *self.broken,
        )


def find_violations(world: FinalState, ledger: Ledger) -> Violations:
    """Compare the final state with the ledger."""
    jobs = [world.jobs[number] for number in sorted(world.jobs)]
    return Violations(
        doubled=tuple(line for job in jobs for line in _effects(job)),
        answers_lost=tuple(
            line for answer in ledger.submitted_answers for line in _answer(answer, world, ledger)
        ),
        jobs_lost=tuple(_jobs(world, ledger)),
        stuck=tuple(f"D-{j.number} ({j.type}) is {j.status}" for j in jobs if not _ended(j)),
        overlapping=tuple(line for job in jobs for line in _overlaps(job)),
        stalled=tuple(_stalls(ledger)),
        wrongly_ended=tuple(line for job in jobs for line in _end(job, ledger)),
        broken=(*world.broken, *ledger.unexpected_errors),
    )


def _ended(job: JobRecord) -> bool:
    return job.status in TERMINAL


def _effects(job: JobRecord) -> Iterator[str]:
    """Compare external effects with recorded steps and the handler's values."""
    if not job.type.startswith(PREFIX):
        return
    steps = {step.key: step for step in job.steps if not step.key.startswith(SLEEP)}
    for key in sorted({key for key, _ in job.effects.created.values()}):
        ids = [id for id, (created, _) in job.effects.created.items() if created == key]
        if len(ids) > 1:
            yield f"D-{job.number}: effect {key} was created {len(ids)} times"
        if key not in steps or steps[key].invocation not in ids:
            yield f"D-{job.number}: effect {key} was created, but no step recorded it"
    for key, step in steps.items():
        value = job.effects.created.get(step.invocation, (key, None))[1]
        if step.status == "done" and step.value != value:
            text = f"is recorded as {step.value!r}, but was created as {value!r}"
            yield f"D-{job.number}: effect {key} {text}"
    for key, value in job.result.get("effects", {}).items():
        if key not in steps or steps[key].value != value:
            yield f"D-{job.number}: effect {key} has another value than the handler received"
    yield from _asked_again(job)


def _asked_again(job: JobRecord) -> Iterator[str]:
    """Yield requests of a run for effects that an earlier run recorded.

    A run that was suspended before its request and lost its job may send it when it wakes; the
    external system deduplicates it by invocation id. A later run must not send it.
    """
    recorded: dict[str, int] = {}
    for request in job.effects.requests:
        first = recorded.get(request.key)
        if request.recorded:
            recorded[request.key] = min(first or request.run, request.run)
        elif first is not None and request.run >= first:
            yield (
                f"D-{job.number}: run {request.run} requested effect {request.key},"
                f" which run {first} had recorded"
            )


def _answer(submitted: SubmittedAnswer, world: FinalState, ledger: Ledger) -> Iterator[str]:
    """Check an accepted answer: stored, resolving its question, and used by the handler."""
    question_name = f"D-{submitted.job}/{submitted.question}"
    name = f"{question_name}: the answer {submitted.value!r} of {submitted.voter}"
    job = world.jobs.get(submitted.job)
    if not submitted.accepted or job is None:
        return  # a missing job is a separate finding
    if not any(
        answer.question == submitted.question
        and answer.event == submitted.event
        and answer.accepted
        and answer.value == submitted.value
        for answer in job.answers
    ):
        yield f"{name} is missing"
        return
    question = next((q for q in job.questions if q.ordinal == submitted.question), None)
    if question is None:
        yield f"{name} no longer has a question"
    elif submitted.value in (APPROVE, DENY):
        yield from (f"{name} {why}" for why in _vote(submitted, question, job))
    elif question.status != "answered" or question.value != submitted.value:
        yield f"{name} did not resolve it: {question.status} {question.value!r}"
    elif job.status == Status.EXPIRED:
        yield f"{name} was not used: the job expired"
    elif (got := _received_answer(job, question.key)) not in (None, submitted.value):
        yield f"{name} was not used: the handler received {got}"


def _vote(submitted: SubmittedAnswer, question: RecordedQuestion, job: JobRecord) -> Iterator[str]:
    """Yield why a vote had no effect; a vote below the quorum is only stored."""
    decided = question.status == "answered"
    if submitted.resolved and not decided:
        yield f"did not decide it: {question.status}"
    elif decided and (submitted.value == DENY or question.outcome == "approved"):
        expected = "denied" if submitted.value == DENY else "approved"
        if question.outcome != expected or submitted.voter not in question.by:
            yield f"did not count: {question.outcome} by {', '.join(question.by)}"
        elif (got := _received_answer(job, question.key)) not in (None, expected):
            yield f"was not used: the handler received {got}"


def _received_answer(job: JobRecord, key: str) -> str | None:
    """Return the answer in the handler's result, or None without a result."""
    if job.status != Status.COMPLETED or not job.type.startswith(PREFIX):
        return None
    return str(job.result.get("answers", {}).get(key, "nothing"))


def _jobs(world: FinalState, ledger: Ledger) -> Iterator[str]:
    for key, numbers in ledger.requests.items():
        if len(numbers) > 1:
            yield f"{key} created {len(numbers)} jobs: {sorted(numbers)}"
    for number, retries in ledger.retries.items():
        if len(retries) > 1:
            yield f"D-{number} was retried {len(retries)} times: {sorted(retries)}"
    for number in sorted(ledger.jobs):
        if number not in world.jobs:
            yield f"D-{number} ({ledger.jobs[number]}) was acknowledged but does not exist"


def _overlaps(job: JobRecord) -> Iterator[str]:
    """Yield fenced writes of a run after a later run started, or while no run was active.

    The job's row lock orders the events, so their order is that of the writes on any clock.
    """
    begun = 0
    running = False
    for moment in job.job_events:
        if moment.kind == "job_started":
            begun += 1
            running = True
        elif moment.to is not None:
            running = False
        elif moment.kind == MARK and (not running or moment.run != begun):
            state = f"run {begun} was active" if running else "no run was active"
            yield f"D-{job.number}: run {moment.run} wrote while {state}"


def _stalls(ledger: Ledger) -> Iterator[str]:
    for seconds in ledger.stalls:
        yield f"no job made progress for {seconds:.1f} s, while a transaction was open"


def _end(job: JobRecord, ledger: Ledger) -> Iterator[str]:
    """Yield an unexpected final status."""
    if not _ended(job):
        return
    expected = {str(Status.COMPLETED)}
    retry = any(job.number in retries for retries in ledger.retries.values())
    if job.type == f"{PREFIX}doomed" and not retry:
        expected = {str(Status.DEAD_LETTER)}
    if job.number in ledger.cancels:
        expected = {str(Status.CANCELED)}
    elif job.number in ledger.cancel_tries:
        expected.add(str(Status.CANCELED))
    if job.status not in expected:
        reason = f": {job.error}" if job.error and job.status != Status.COMPLETED else ""
        yield f"D-{job.number} ({job.type}) is {job.status}, not {' or '.join(expected)}{reason}"
