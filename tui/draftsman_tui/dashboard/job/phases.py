"""Time of a job in the queue, in runs and waiting for people, as a bar. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from draftsman.domain.job import TERMINAL, Job
from draftsman.domain.question import Question
from draftsman.domain.run import Run
from draftsman_tui.common import times
from draftsman_tui.dashboard.job.row_layout import Row
from draftsman_tui.dashboard.resource import Cell

QUEUE, RUN, WAIT = "queued", "runs", "waits"
_LOOKS: Final = {QUEUE: ("░", "dim"), RUN: ("█", "busy"), WAIT: ("▒", "asks")}
"""Sign and role of each phase: signs differ as well, for terminals without colors."""
Phase = tuple[str, datetime, datetime]
"""Kind, beginning and end."""


def phases(
    job: Job, runs: Sequence[Run], questions: Sequence[Question], now: datetime
) -> list[Phase]:
    """Return the phases of a job in order, from its creation until its end or now."""
    end = job.finished_at or now
    busy = [(RUN, run.started_at, run.finished_at or end) for run in runs]
    busy += [
        (WAIT, question.asked_at, min(question.answered_at or question.expires_at or end, end))
        for question in questions
        if question.answered_at
        or question.expires_at is None
        or question.expires_at > now
        or job.status in TERMINAL
    ]
    parts: list[Phase] = []
    at = job.created_at
    for kind, start, stop in sorted(busy, key=lambda phase: phase[1]):
        start = max(start, at)
        if start > at:
            parts.append((QUEUE, at, start))
        if stop > start:
            parts.append((kind, start, stop))
        at = max(at, stop)
    if end > at:
        parts.append((QUEUE, at, end))
    return parts


def bar(parts: Sequence[Phase], width: int) -> Row:
    """Return the phases as a bar of so many cells, and the time of each kind."""
    totals = {
        kind: sum((end - start).total_seconds() for name, start, end in parts if name == kind)
        for kind in _LOOKS
    }
    words = [
        Cell(f"  {_LOOKS[kind][0]} {kind} {times.span(seconds)}", _LOOKS[kind][1])
        for kind, seconds in totals.items()
        if seconds >= 1
    ]
    room = width - sum(len(word.text) for word in words)
    whole = sum(totals.values())
    if whole <= 0 or room < len(parts):
        return tuple(words)
    cells, done, drawn = [], 0.0, 0
    for kind, start, end in parts:
        done += (end - start).total_seconds()
        size = max(1, round(done / whole * room) - drawn)
        size = min(size, room - drawn)
        drawn += size
        sign, role = _LOOKS[kind]
        cells.append(Cell(sign * size, role))
    return (*cells, *words)
