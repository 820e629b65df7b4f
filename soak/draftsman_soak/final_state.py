"""Final state of a seed: each job with its events, answers, steps and effects."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from draftsman.errors import NotFound
from draftsman.runtime import Runtime
from draftsman_soak.external_effects import Effects, read_effects
from draftsman_soak.ledger import retry_until_reachable

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
    gate, jobs = asyncio.Semaphore(AT_ONCE), dict[int, JobRecord]()

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
    broken = [f"{name}: D-{row[0]}: {row[1]}" for name, group in rows.items() for row in group]
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
