"""The comparison: what was acknowledged and made outside, against what is there. Pure.

Each finding is one line that names the job. Any finding fails the soak.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from draftsman.domain.job import TERMINAL, Status
from draftsman_soak.final_state import FinalState, JobRecord, RecordedQuestion
from draftsman_soak.handlers import MARK
from draftsman_soak.ledger import Ledger, SubmittedAnswer
from draftsman_soak.seed_config import PREFIX

APPROVE, DENY = "approve", "deny"
SLEEP: Final = "sleep:"
"""Begins the keys of steps that `ctx.sleep` keeps; they have no effect outside."""


@dataclass(frozen=True, slots=True)
class Violations:
    """What is wrong, by promise; nothing, where every promise was kept."""

    doubled: tuple[str, ...] = ()
    """Effects made twice though they were on record, or recorded otherwise than they were made."""
    answers_lost: tuple[str, ...] = ()
    """Answers that were acknowledged as accepted, and are missing or were not carried on with."""
    jobs_lost: tuple[str, ...] = ()
    """Requests that were acknowledged and have no job, or more than one."""
    stuck: tuple[str, ...] = ()
    """Jobs that did not end."""
    overlapping: tuple[str, ...] = ()
    """Jobs that two runs could write to at once, by the order of their fenced writes."""
    wrongly_ended: tuple[str, ...] = ()
    """Jobs that ended otherwise than they had to, as by a cancel that had no effect."""
    broken: tuple[str, ...] = ()
    """Invariants that do not hold, and errors that no service should have raised."""

    @property
    def findings(self) -> tuple[str, ...]:
        """Return every finding."""
        parts = (self.doubled, self.answers_lost, self.jobs_lost, self.stuck)
        return sum((*parts, self.overlapping, self.wrongly_ended, self.broken), ())


def find_violations(world: FinalState, ledger: Ledger) -> Violations:
    """Hold the world against the ledger."""
    found = [world.jobs[number] for number in sorted(world.jobs)]
    return Violations(
        doubled=tuple(line for job in found for line in _effects(job)),
        answers_lost=tuple(
            line for given in ledger.submitted_answers for line in _answer(given, world, ledger)
        ),
        jobs_lost=tuple(_jobs(world, ledger)),
        stuck=tuple(f"D-{j.number} ({j.type}) is {j.status}" for j in found if not _ended(j)),
        overlapping=tuple(line for job in found for line in _overlaps(job)),
        wrongly_ended=tuple(line for job in found for line in _end(job, ledger)),
        broken=(*world.broken, *ledger.unexpected_errors),
    )


def _ended(job: JobRecord) -> bool:
    return job.status in TERMINAL


def _effects(job: JobRecord) -> Iterator[str]:
    """Hold what was made outside against the steps on record, and what the handler got."""
    if not job.type.startswith(PREFIX):
        return
    steps = {step.key: step for step in job.steps if not step.key.startswith(SLEEP)}
    for key in sorted({key for key, _ in job.effects.made.values()}):
        ids = [id for id, (made, _) in job.effects.made.items() if made == key]
        if len(ids) > 1:
            yield f"D-{job.number}: effect {key} was made {len(ids)} times"
        if key not in steps or steps[key].invocation not in ids:
            yield f"D-{job.number}: effect {key} was made, and no step knows of it"
    for key, step in steps.items():
        made = job.effects.made.get(step.invocation, (key, None))[1]
        if step.status == "done" and step.value != made:
            yield f"D-{job.number}: effect {key} is recorded as {step.value!r}, made as {made!r}"
    for key, value in job.result.get("effects", {}).items():
        if key not in steps or steps[key].value != value:
            yield f"D-{job.number}: effect {key} is not the one that the handler got"
    yield from _asked_again(job)


def _asked_again(job: JobRecord) -> Iterator[str]:
    """Yield requests of a run for what an earlier run had on record.

    A run that was suspended before its request, and lost its job, may ask when it wakes: the world
    outside refuses it by its invocation id. A later run must not ask at all.
    """
    recorded: dict[str, int] = {}
    for request in job.effects.requests:
        first = recorded.get(request.key)
        if request.recorded:
            recorded[request.key] = min(first or request.run, request.run)
        elif first is not None and request.run >= first:
            yield (
                f"D-{job.number}: run {request.run} asked for effect {request.key},"
                f" which run {first} had recorded"
            )


def _answer(given: SubmittedAnswer, world: FinalState, ledger: Ledger) -> Iterator[str]:
    """Follow one accepted answer from its acknowledgement to what the handler made of it."""
    name = f"D-{given.job}/{given.question}: the answer {given.value!r} of {given.voter}"
    job = world.jobs.get(given.job)
    if not given.accepted or job is None:
        return  # a job that is missing is counted as such
    if not any(
        kept.question == given.question
        and kept.event == given.event
        and kept.accepted
        and kept.value == given.value
        for kept in job.answers
    ):
        yield f"{name} is missing"
        return
    question = next((one for one in job.questions if one.ordinal == given.question), None)
    if question is None:
        yield f"{name} has no question any more"
    elif given.value in (APPROVE, DENY):
        yield from (f"{name} {why}" for why in _vote(given, question, job))
    elif question.status != "answered" or question.value != given.value:
        yield f"{name} did not resolve it: {question.status} {question.value!r}"
    elif job.status == Status.EXPIRED:
        yield f"{name} was not carried on with: the job expired"
    elif (got := _got(job, question.key)) not in (None, given.value):
        yield f"{name} was not carried on with: the handler got {got}"


def _vote(given: SubmittedAnswer, question: RecordedQuestion, job: JobRecord) -> Iterator[str]:
    """Yield why a vote did not count; one that decided nothing yet is only kept."""
    decided = question.status == "answered"
    if given.resolved and not decided:
        yield f"did not decide it: {question.status}"
    elif decided and (given.value == DENY or question.outcome == "approved"):
        wanted = "denied" if given.value == DENY else "approved"
        if question.outcome != wanted or given.voter not in question.by:
            yield f"did not count: {question.outcome} by {', '.join(question.by)}"
        elif (got := _got(job, question.key)) not in (None, wanted):
            yield f"was not carried on with: the handler got {got}"


def _got(job: JobRecord, key: str) -> str | None:
    """Return the answer that the handler went on with; None where its result does not tell."""
    if job.status != Status.COMPLETED or not job.type.startswith(PREFIX):
        return None
    return str(job.result.get("answers", {}).get(key, "nothing"))


def _jobs(world: FinalState, ledger: Ledger) -> Iterator[str]:
    for key, numbers in ledger.requests.items():
        if len(numbers) > 1:
            yield f"{key} made {len(numbers)} jobs: {sorted(numbers)}"
    for number, made in ledger.retries.items():
        if len(made) > 1:
            yield f"D-{number} was retried {len(made)} times: {sorted(made)}"
    for number in sorted(ledger.jobs):
        if number not in world.jobs:
            yield f"D-{number} ({ledger.jobs[number]}) was acknowledged and is not there"


def _overlaps(job: JobRecord) -> Iterator[str]:
    """Yield fenced writes of a run after a later run began, or when none was running.

    The job's row lock orders the trail, so its order is that of the writes, whatever clocks say.
    """
    begun, running = 0, False
    for moment in job.job_events:
        if moment.kind == "job_started":
            begun += 1
            running = True
        elif moment.to is not None:
            running = False
        elif moment.kind == MARK and (not running or moment.run != begun):
            state = f"run {begun} ran" if running else "none ran"
            yield f"D-{job.number}: run {moment.run} wrote when {state}"


def _end(job: JobRecord, ledger: Ledger) -> Iterator[str]:
    """Yield what a job ended as, where it should have ended as something else."""
    if not _ended(job):
        return
    wanted = {str(Status.COMPLETED)}
    retry = any(job.number in made for made in ledger.retries.values())
    if job.type == f"{PREFIX}doomed" and not retry:
        wanted = {str(Status.DEAD_LETTER)}
    if job.number in ledger.cancels:
        wanted = {str(Status.CANCELED)}
    elif job.number in ledger.cancel_tries:
        wanted.add(str(Status.CANCELED))
    if job.status not in wanted:
        because = f": {job.error}" if job.error and job.status != Status.COMPLETED else ""
        yield f"D-{job.number} ({job.type}) is {job.status}, not {' or '.join(wanted)}{because}"
