"""What is there at the end of a seed: each job with its trail, answers, steps and effects."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from draftsman.errors import NotFound
from draftsman.runtime import Runtime
from draftsman_tui.soak.ledger import insist
from draftsman_tui.soak.outside import Effects, effects

AT_ONCE: Final = 4


@dataclass(frozen=True, slots=True)
class Recorded:
    """A step: `pending` or `done`, and the value on record."""

    key: str
    status: str
    invocation: str
    value: Any


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer as it is kept; `said` is its value, approve or deny."""

    question: int
    event: str
    said: str | None
    accepted: bool


@dataclass(frozen=True, slots=True)
class Question:
    """A question and how it was resolved."""

    ordinal: int
    key: str
    status: str
    outcome: str | None = None
    value: str | None = None
    by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Moment:
    """An event of the trail; `at` is the machine's Unix time, whatever the clock was put to."""

    kind: str
    at: float
    actor: str = "system"
    run: int | None = None
    to: str | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """One job and all that belongs to it."""

    number: int
    type: str
    status: str
    result: dict[str, Any] = field(default_factory=dict)
    error: str | None = None
    steps: tuple[Recorded, ...] = ()
    questions: tuple[Question, ...] = ()
    answers: tuple[Answer, ...] = ()
    trail: tuple[Moment, ...] = ()
    effects: Effects = field(default_factory=Effects)


@dataclass(frozen=True, slots=True)
class World:
    """All jobs that are there, by number, and what `doctor --invariants` says of the data."""

    jobs: dict[int, Found] = field(default_factory=dict)
    broken: tuple[str, ...] = ()


async def look(runtime: Runtime, numbers: Iterable[int], outside: Path) -> World:
    """Return what is there of these jobs; one that is not there is left out."""
    gate, jobs = asyncio.Semaphore(AT_ONCE), dict[int, Found]()

    async def one(number: int) -> None:
        async with gate:
            try:
                jobs[number] = await insist(lambda: _found(runtime, number, outside))
            except NotFound:
                return

    await asyncio.gather(*(one(number) for number in numbers))
    rows = await insist(lambda: runtime.inspect.invariants())
    broken = [f"{name}: D-{row[0]}: {row[1]}" for name, found in rows.items() for row in found]
    return World(jobs, tuple(broken))


async def _found(runtime: Runtime, number: int, outside: Path) -> Found:
    job = await runtime.inspect.job(number)
    asked, answers = await runtime.questions.of_job(number)
    steps = await runtime.checkpoints.steps(number)
    return Found(
        number,
        job.type,
        str(job.status),
        job.result or {},
        job.last_error,
        tuple(Recorded(one.key, one.status, one.invocation_id, one.result) for one in steps),
        tuple(
            Question(
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
            Answer(one.question, one.source_event_id, _said(one.payload), one.accepted)
            for one in answers
        ),
        await _trail(runtime, number),
        await asyncio.to_thread(effects, outside, number),
    )


async def _trail(runtime: Runtime, number: int) -> tuple[Moment, ...]:
    found: list[Moment] = []
    last = 0
    while events := await runtime.inspect.trail(number, last):
        last = events[-1].id
        for one in events:
            at = one.created_at.timestamp()
            found.append(Moment(one.kind, at, one.actor, one.run, one.to_status))
    return tuple(found)


def _said(payload: dict[str, Any]) -> str | None:
    return payload.get("value") or payload.get("decision") or payload.get("text")
