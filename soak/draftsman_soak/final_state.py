"""What is there at the end of a seed: each job with its trail, answers, steps and effects."""

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
    """A step: `pending` or `done`, and the value on record."""

    key: str
    status: str
    invocation: str
    value: Any


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """An answer as it is kept; `said` is its value, approve or deny."""

    question: int
    event: str
    value: str | None
    accepted: bool


@dataclass(frozen=True, slots=True)
class RecordedQuestion:
    """A question and how it was resolved."""

    ordinal: int
    key: str
    status: str
    outcome: str | None = None
    value: str | None = None
    by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RecordedEvent:
    """An event of the trail; `at` is the machine's Unix time, whatever the clock was put to."""

    kind: str
    at: float
    actor: str = "system"
    run: int | None = None
    to: str | None = None


@dataclass(frozen=True, slots=True)
class JobRecord:
    """One job and all that belongs to it."""

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
    """All jobs that are there, by number, and what `doctor --invariants` says of the data."""

    jobs: dict[int, JobRecord] = field(default_factory=dict)
    broken: tuple[str, ...] = ()


async def read_final_state(runtime: Runtime, numbers: Iterable[int], outside: Path) -> FinalState:
    """Return what is there of these jobs; one that is not there is left out."""
    gate, jobs = asyncio.Semaphore(AT_ONCE), dict[int, JobRecord]()

    async def one(number: int) -> None:
        async with gate:
            try:
                jobs[number] = await retry_until_reachable(lambda: _found(runtime, number, outside))
            except NotFound:
                return

    await asyncio.gather(*(one(number) for number in numbers))
    rows = await retry_until_reachable(lambda: runtime.read_model.invariants())
    broken = [f"{name}: D-{row[0]}: {row[1]}" for name, found in rows.items() for row in found]
    return FinalState(jobs, tuple(broken))


async def _found(runtime: Runtime, number: int, outside: Path) -> JobRecord:
    job = await runtime.read_model.job(number)
    asked, answers = await runtime.questions.of_job(number)
    steps = await runtime.checkpoints.steps(number)
    return JobRecord(
        number,
        job.type,
        str(job.status),
        job.result or {},
        job.last_error,
        tuple(RecordedStep(one.key, one.status, one.invocation_id, one.result) for one in steps),
        tuple(
            RecordedQuestion(
                one.ordinal,
                one.key,
                str(one.status),
                (one.resolution or {}).get("outcome"),
                (one.resolution or {}).get("value"),
                tuple((one.resolution or {}).get("by", ())),
            )
            for one in asked
        ),
        tuple(
            RecordedAnswer(one.question, one.source_event_id, _said(one.payload), one.accepted)
            for one in answers
        ),
        await _trail(runtime, number),
        await asyncio.to_thread(read_effects, outside, number),
    )


async def _trail(runtime: Runtime, number: int) -> tuple[RecordedEvent, ...]:
    found: list[RecordedEvent] = []
    last = 0
    while events := await runtime.read_model.job_events(number, last):
        last = events[-1].id
        for one in events:
            at = one.created_at.timestamp()
            found.append(RecordedEvent(one.kind, at, one.actor, one.run, one.to_status))
    return tuple(found)


def _said(payload: dict[str, Any]) -> str | None:
    return payload.get("value") or payload.get("decision") or payload.get("text")
