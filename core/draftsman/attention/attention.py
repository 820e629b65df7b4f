"""Notifications about open questions, and the next step of their ladders. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from draftsman.attention.ladder import NOTIFIED, LadderStep, NotificationOutcome
from draftsman.durations import parse_duration
from draftsman.ids import question_name
from draftsman.people.hours import InterruptibleHours

# When a reminder may be sent, and to which targets.


MAX_DELAY: Final = 86_400.0
"""Maximum seconds of an acknowledgment, a snooze or a delegation."""
ACKNOWLEDGED: Final = 3600.0
"""Default seconds of an acknowledgment and of a delegation."""
SNOOZED: Final = 7200.0
"""Default seconds of a snooze."""
_FOR: Final = re.compile(r"for\s+", re.IGNORECASE)


def parse_delay(text: str, default: float) -> float:
    """Return the seconds of `1h`, `1 h` or `for 1 h`, or the default without one.

    Raises UsageError.
    """
    duration = _FOR.sub("", text.strip())
    return parse_duration(duration, most=MAX_DELAY) if duration else default


@dataclass(frozen=True, slots=True)
class ReminderDelay:
    """An acknowledgment of a question, or the snooze of a person, that holds until a time."""

    person: str
    expires_at: datetime
    acknowledged: bool


@dataclass(frozen=True, slots=True)
class PingRecipient:
    """A person who may get a reminder."""

    name: str
    quiet: InterruptibleHours | None


@dataclass(frozen=True, slots=True)
class PingAudience:
    """The possible responders of a question, its targets, and what delays its reminders."""

    responders: Sequence[PingRecipient]
    direct: Mapping[str, PingRecipient] = field(default_factory=dict)
    """The person of each target that reaches a single person."""
    shared: bool = True
    """Whether it has another target."""
    snoozed: Mapping[str, datetime] = field(default_factory=dict)
    acknowledged_until: datetime | None = None
    approved_by: Sequence[str] = ()
    """The people who approved so far, of an approval that needs several."""
    default: InterruptibleHours | None = None
    """Quiet hours of a question without known responders."""

    def free_at(self, moment: datetime, person: PingRecipient) -> datetime:
        """Return the first time from `moment` on at which the person may be interrupted."""
        moment = max(moment, self.snoozed.get(person.name, moment))
        return moment if person.quiet is None else person.quiet.over(moment)


@dataclass(frozen=True, slots=True)
class PingPlan:
    """Whether a reminder waits; if not, the targets that do not get it."""

    later: datetime | None
    silent: frozenset[str] = frozenset()


def plan_ping(now: datetime, audience: PingAudience) -> PingPlan:
    """Decide on a reminder that is due.

    It waits while the question is acknowledged, and while all people whom it would reach have quiet
    hours or snoozed the question: those of direct targets, or of a shared target all possible
    responders. A direct target of a person who may not be interrupted does not get it, nor that of
    one who has approved.
    """
    start = max(now, audience.acknowledged_until or now)
    people: Sequence[PingRecipient] = audience.responders
    if audience.direct and not audience.shared:
        people = list(audience.direct.values())
    asked = [person for person in people if person.name not in audience.approved_by]
    at = min(
        audience.free_at(start, person) for person in asked or [PingRecipient("", audience.default)]
    )
    if at > now:
        return PingPlan(at)
    silent = (
        target
        for target, person in audience.direct.items()
        if person.name in audience.approved_by or audience.free_at(now, person) > now
    )
    return PingPlan(None, frozenset(silent))


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
        job=row.job,
        question=row.question,
        critical=row.critical,
        ladder=row.ladder,
        notifications=tuple(
            item for item in notifications if (item.job, item.question) == (row.job, row.question)
        ),
        next_step=() if step is None else step.notify,
        next_at=row.due_at,
        escalates=step is not None and step.escalate,
        delegated_to=row.delegated_to,
        delegated_by=row.delegated_by,
        delegated_until=row.delegated_until,
        acknowledged_by=None if held is None else held.person,
        acknowledged_until=None if held is None else held.expires_at,
        snoozed=tuple(delay for delay in delays if not delay.acknowledged),
    )
