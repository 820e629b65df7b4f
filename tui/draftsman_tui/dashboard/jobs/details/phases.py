"""Phases of a job: in the queue, in runs and waiting for people. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from draftsman.jobs.job import Job, Status
from draftsman.jobs.runs.run import Run, RunStatus
from draftsman.people.spans import actor_spans, spans_text
from draftsman.questions.question import Question, QuestionKind, QuestionStatus
from draftsman_tui.dashboard.jobs.details.row_layout import Row
from draftsman_tui.dashboard.tables.cells import ROLES
from draftsman_tui.dashboard.tables.resource import Cell
from draftsman_tui.terminal import times
from draftsman_tui.terminal.output import one_line

QUEUE, RUN, WAIT = "queued", "runs", "waits"
LOOKS: Final = {QUEUE: ("░", "dim"), RUN: ("█", "busy"), WAIT: ("▒", "asks")}
"""Sign and role of each kind: signs differ as well, for terminals without colors."""


@dataclass(frozen=True, slots=True)
class Phase:
    """Part of a job's time. `name` and `outcome` describe it: `run .2`, `failed`."""

    kind: str
    start: datetime
    end: datetime
    name: str
    outcome: str = ""
    role: str = ""
    """Role of the outcome."""

    @property
    def seconds(self) -> float:
        """Its length."""
        return (self.end - self.start).total_seconds()


def phases(
    job: Job, runs: Sequence[Run], questions: Sequence[Question], now: datetime
) -> list[Phase]:
    """Return the phases of a job in order, from its creation until its end or now."""
    end = job.finished_at or now
    busy = [*_runs(runs, end), *_waits(runs, questions, end)]
    parts: list[Phase] = []
    at, gap = job.created_at, "scheduled" if job.run_at and not runs else "queued"
    for phase in sorted(busy, key=lambda phase: phase.start):
        start = max(phase.start, at)
        if start > at:
            parts.append(Phase(QUEUE, at, start, gap))
        if phase.end > start:
            parts.append(Phase(phase.kind, start, phase.end, phase.name, phase.outcome, phase.role))
        at = max(at, phase.end)
        gap = "retrying" if phase.outcome == RunStatus.FAILED else "queued"
    if end > at:
        if job.status in (Status.SCHEDULED, Status.RETRYING):
            gap = str(job.status)
        parts.append(Phase(QUEUE, at, end, gap))
    return parts


def _runs(runs: Sequence[Run], end: datetime) -> Iterator[Phase]:
    for run in runs:
        status = str(run.status)
        name, stop = f"run .{run.ordinal}", run.finished_at or end
        yield Phase(RUN, run.started_at, stop, name, status, ROLES.get(status, "dim"))


def _waits(runs: Sequence[Run], questions: Sequence[Question], end: datetime) -> Iterator[Phase]:
    """Yield the waits for people: no run starts, and nothing else is asked, before one ends."""
    starts = [run.started_at for run in runs] + [question.asked_at for question in questions]
    at_once: defaultdict[datetime, list[Question]] = defaultdict(list)
    for question in questions:
        at_once[question.asked_at].append(question)
    for asked in at_once.values():
        first = asked[0]
        later = [start for start in starts if start > first.asked_at]
        name = "approval" if first.kind is QuestionKind.APPROVAL else "question"
        numbers = ", ".join(f"/{question.ordinal}" for question in asked)
        is_answered = any(question.answered_at for question in asked)
        is_open = any(question.status is QuestionStatus.OPEN for question in asked)
        yield Phase(
            WAIT,
            first.asked_at,
            min([max(_closed_at(question, end) for question in asked), end, *later]),
            f"{name} {numbers}" if len(asked) == 1 else f"questions {numbers}",
            one_line("; ".join(map(_outcome, asked))),
            "asks" if is_open else "good" if is_answered else "warns",
        )


def _closed_at(question: Question, end: datetime) -> datetime:
    if question.status is QuestionStatus.OPEN:
        return end
    return question.answered_at or question.expires_at or end


def _outcome(question: Question) -> str:
    """Return the result of a question, with its people: `answered by ben`."""
    people = spans_text(actor_spans((question.resolution or {}).get("by", ())))
    return f"{question.outcome} by {people}" if people else question.outcome


def bar(parts: Sequence[Phase], width: int) -> Row:
    """Return the phases as a bar of so many cells, and the time of each kind."""
    totals = {kind: sum(part.seconds for part in parts if part.kind == kind) for kind in LOOKS}
    words = [
        Cell(f"  {LOOKS[kind][0]} {kind} {times.span(seconds)}", LOOKS[kind][1])
        for kind, seconds in totals.items()
        if seconds >= 1
    ]
    room = width - sum(len(word.text) for word in words)
    whole = sum(totals.values())
    if whole <= 0 or room < len(parts):
        return tuple(words)
    cells, done, drawn = [], 0.0, 0
    for part in parts:
        done += part.seconds
        size = max(1, round(done / whole * room) - drawn)
        size = min(size, room - drawn)
        drawn += size
        sign, role = LOOKS[part.kind]
        cells.append(Cell(sign * size, role))
    return (*cells, *words)
