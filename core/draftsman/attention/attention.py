"""Notifications about open questions, and the next step of their ladders. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from draftsman.attention.ladder import NOTIFIED, LadderStep, NotificationOutcome
from draftsman.attention.pings import ReminderDelay
from draftsman.ids import question_name

_SKIPPED: Final = {
    NotificationOutcome.AWAY: "away",
    NotificationOutcome.SNOOZED: "snoozed it",
    NotificationOutcome.NOT_ALLOWED: "may not answer",
    NotificationOutcome.EMPTY: "no person",
}


@dataclass(frozen=True, slots=True)
class AttentionRow:
    """The ladder of an open question, None without a ladder, and its delegation."""

    job: int
    question: int
    ladder: str | None
    steps: Sequence[Mapping[str, Any]] | None
    step: int
    due_at: datetime | None
    critical: bool
    delegated_to: str | None
    delegated_by: str | None
    delegated_until: datetime | None


@dataclass(frozen=True, slots=True)
class QuestionNotification:
    """A recipient of a step that was taken; step 0 is a delegation."""

    job: int
    question: int
    step: int
    recipient: str
    outcome: NotificationOutcome
    away_until: datetime | None
    delivery: int | None
    notified_at: datetime
    delivery_status: str | None
    sent_at: datetime | None

    @property
    def notified(self) -> bool:
        """Whether the recipient was notified."""
        return self.outcome in NOTIFIED

    @property
    def skip_text(self) -> str:
        """Return why the recipient was not notified; "" if it was."""
        return _SKIPPED.get(NotificationOutcome(self.outcome), "")


@dataclass(frozen=True, slots=True)
class QuestionAttention:
    """The notifications of an open question, its delays, and the next step of its ladder."""

    job: int
    question: int
    critical: bool
    ladder: str | None
    notifications: tuple[QuestionNotification, ...]
    next_step: tuple[str, ...]
    """Recipients of the next step, as configured; empty if there is none."""
    next_at: datetime | None
    escalates: bool
    """Whether the people of the next step may answer from then on."""
    delegated_to: str | None = None
    delegated_by: str | None = None
    delegated_until: datetime | None = None
    acknowledged_by: str | None = None
    acknowledged_until: datetime | None = None
    snoozed: tuple[ReminderDelay, ...] = ()

    @property
    def name(self) -> str:
        """Name of the question."""
        return question_name(self.job, self.question)


def attention_of(
    row: AttentionRow,
    notifications: Sequence[QuestionNotification],
    delays: Sequence[ReminderDelay],
) -> QuestionAttention:
    """Return the attention of a question."""
    step = None
    if row.steps is not None and row.due_at is not None:
        step = LadderStep.of(row.steps[row.step - 1])
    held = next((delay for delay in delays if delay.acknowledged), None)
    return QuestionAttention(
        row.job,
        row.question,
        row.critical,
        row.ladder,
        tuple(
            item for item in notifications if (item.job, item.question) == (row.job, row.question)
        ),
        () if step is None else step.notify,
        row.due_at,
        step is not None and step.escalate,
        row.delegated_to,
        row.delegated_by,
        row.delegated_until,
        None if held is None else held.person,
        None if held is None else held.expires_at,
        tuple(delay for delay in delays if not delay.acknowledged),
    )
