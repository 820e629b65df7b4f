"""Reminders of open questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from draftsman.database.database import Connection, fetch_all, rows
from draftsman.database.named_queries import load
from draftsman.database.selection import ALL, Selection
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.questions.question import QuestionKind

_Q = load("reminders")


@dataclass(frozen=True, slots=True)
class DueReminder:
    """An open question with a due reminder; `now` is the database's time."""

    job: int
    question: int
    remind_at: datetime
    kind: QuestionKind
    approvers: list[str]
    invoker: str
    now: datetime
    snoozed: list[str] = field(default_factory=list)
    """People who snoozed it, and until when."""
    snoozed_until: list[datetime] = field(default_factory=list)
    direct: list[str] = field(default_factory=list)
    """Targets in Slack that reach a single known person."""
    owners: list[str] = field(default_factory=list)
    """The person of each direct target."""
    shared: bool = True
    """Whether it has another target."""
    acknowledged_until: datetime | None = None


async def due(
    conn: Connection, term: LeaderTerm, limit: int, selection: Selection = ALL
) -> list[DueReminder]:
    """Return due reminders, the longest overdue first."""
    return await fetch_all(conn, _Q["due"], term.params(limit) | selection.params, DueReminder)


async def remind(
    conn: Connection,
    term: LeaderTerm,
    reminders: Sequence[tuple[DueReminder, datetime | None]],
    silent: Sequence[tuple[int, str]] = (),
) -> int:
    """Send these reminders, or postpone them to the given time; return how many were still due.

    `silent` are jobs with a user of Slack who gets no reminder of it.
    """
    params = {
        "jobs": [reminder.job for reminder, _ in reminders],
        "questions": [reminder.question for reminder, _ in reminders],
        "seen": [reminder.remind_at for reminder, _ in reminders],
        "later": [postponed_to for _, postponed_to in reminders],
        "silent": [f"{job}:{target}" for job, target in silent],
    }
    return len(await rows(conn, _Q["remind"], term.params(0) | params))
