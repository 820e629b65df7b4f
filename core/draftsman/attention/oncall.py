"""On-call schedules: people on duty, and handovers. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Final, Protocol
from zoneinfo import ZoneInfo

_WORD: Final = re.compile(r"[\w.-]+")


@dataclass(frozen=True, slots=True)
class Duty:
    """A person on duty from `start` until `end`, the handover."""

    person: str
    start: datetime
    end: datetime


class DutySchedule(Protocol):
    """A source of duties."""

    def between(self, start: datetime, end: datetime) -> list[Duty]:
        """Return the duties of a time, in order; two people may be on duty at once."""
        ...


@dataclass(frozen=True, slots=True)
class Rotation:
    """People who take turns of `days` days from `start`, which is local time, on.

    A handover has the same local time in summer and winter. An override replaces the rotation.
    """

    people: tuple[str, ...]
    start: datetime
    days: int
    zone: ZoneInfo
    overrides: tuple[Duty, ...] = ()

    def between(self, start: datetime, end: datetime) -> list[Duty]:
        """Return the duties of a time, in order; none before the rotation starts."""
        turn = timedelta(days=self.days)
        local = start.astimezone(self.zone).replace(tzinfo=None)
        number = max(0, (local - self.start) // turn - 1)
        duties = []
        while (begin := self._instant(number, turn)) < end:
            after = self._instant(number + 1, turn)
            duties.append(Duty(self.people[number % len(self.people)], begin, after))
            number += 1
        return [
            duty
            for duty in _with_overrides(duties, self.overrides)
            if start < duty.end and duty.start < end
        ]

    def _instant(self, number: int, turn: timedelta) -> datetime:
        return (self.start + number * turn).replace(tzinfo=self.zone).astimezone(UTC)


@dataclass(frozen=True, slots=True)
class CalendarDuties:
    """The events of a calendar that name a person, read before."""

    duties: tuple[Duty, ...]

    def between(self, start: datetime, end: datetime) -> list[Duty]:
        """Return the duties of a time, in order."""
        return [duty for duty in self.duties if start < duty.end and duty.start < end]


def on_duty(schedule: DutySchedule, now: datetime) -> list[Duty]:
    """Return the duties at a time; an empty list without any."""
    return schedule.between(now, now + timedelta(microseconds=1))


def next_duty(schedule: DutySchedule, now: datetime, horizon: timedelta) -> Duty | None:
    """Return the first duty that begins after a time, within the horizon."""
    later = (duty for duty in schedule.between(now, now + horizon) if duty.start > now)
    return min(later, key=lambda duty: duty.start, default=None)


def person_in(summary: str, people: Collection[str]) -> str | None:
    """Return the only known person that the title of an event names, else None."""
    names = {name.casefold(): name for name in people}
    if (name := names.get(summary.strip().casefold())) is not None:
        return name
    named = {names[word.casefold()] for word in _WORD.findall(summary) if word.casefold() in names}
    return named.pop() if len(named) == 1 else None


def _with_overrides(duties: Sequence[Duty], overrides: Iterable[Duty]) -> list[Duty]:
    """Return the duties, cut where an override begins and ends."""
    ordered = sorted(overrides, key=lambda duty: duty.start)
    edges = sorted({edge for duty in (*duties, *ordered) for edge in (duty.start, duty.end)})
    merged: list[Duty] = []
    for start, end in pairwise(edges):
        holders = [duty for duty in (*reversed(ordered), *duties) if duty.start <= start < duty.end]
        if not holders:
            continue
        person = holders[0].person
        if merged and merged[-1].person == person and merged[-1].end == start:
            merged[-1] = Duty(person, merged[-1].start, end)
        else:
            merged.append(Duty(person, start, end))
    return merged
