"""When a reminder may be sent, and to which targets. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from draftsman.durations import parse_duration
from draftsman.people.quiet_hours import InterruptibleHours

MAX_DELAY: Final = 86_400.0
"""Maximum seconds of an acknowledgment, a snooze or a delegation."""
ACKNOWLEDGED: Final = 3600.0
"""Default seconds of an acknowledgment and of a delegation."""
SNOOZED: Final = 7200.0
"""Default seconds of a snooze."""


def parse_delay(text: str, default: float) -> float:
    """Return the seconds of a duration, or the default without one; raises UsageError."""
    return parse_duration(text, most=MAX_DELAY) if text else default


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
    responders. A direct target of a person who may not be interrupted does not get it.
    """
    start = max(now, audience.acknowledged_until or now)
    people: Sequence[PingRecipient] = audience.responders
    if audience.direct and not audience.shared:
        people = list(audience.direct.values())
    people = people or [PingRecipient("", audience.default)]
    at = min(audience.free_at(start, person) for person in people)
    if at > now:
        return PingPlan(at)
    silent = (
        target for target, person in audience.direct.items() if audience.free_at(now, person) > now
    )
    return PingPlan(None, frozenset(silent))
