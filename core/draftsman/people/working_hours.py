"""Working hours of the week, and the hours in which a person may be interrupted. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from draftsman.people.quiet_hours import QuietHours, local_instant

DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
EXAMPLE: Final = "Mon-Fri 09:00-17:00"
MAX_DAYS: Final = 400
"""Days that are searched for the next working hours."""
_DAY: Final = timedelta(days=1)
_CLOCK: Final = r"(?:[01]\d|2[0-3]):[0-5]\d"
_PART: Final = re.compile(
    rf"(?P<first>[a-z]{{3}})(?:-(?P<last>[a-z]{{3}}))?\s+(?P<start>{_CLOCK})-(?P<end>{_CLOCK}|24:00)"
)


@dataclass(frozen=True, slots=True)
class WorkShift:
    """Hours that begin on a weekday, 0 for Monday, and end on the next day if `end` is earlier."""

    weekday: int
    start: time
    end: time

    def of(self, day: date, zone: ZoneInfo) -> tuple[datetime, datetime]:
        """Return begin and end of the shift that begins on a day."""
        after = day if self.start < self.end else day + _DAY
        begin = local_instant(day, self.start, zone, last=False)
        return begin, local_instant(after, self.end, zone, last=True)


ALWAYS: Final = tuple(WorkShift(day, time.min, time.min) for day in range(7))
"""Shifts of a person with holidays, but without working hours."""


@dataclass(frozen=True, slots=True)
class Holidays:
    """Days without working hours; `days` reads them, and again after their file has changed."""

    name: str
    dates: frozenset[date] = frozenset()
    file: str | None = None
    days: Callable[[], frozenset[date]] = field(default=frozenset, compare=False)

    def __contains__(self, day: date) -> bool:
        return day in self.dates or (self.file is not None and day in self.days())


@dataclass(frozen=True, slots=True)
class PersonHours:
    """When a person may be interrupted: in the working hours, and outside of the quiet hours."""

    quiet: QuietHours | None
    shifts: tuple[WorkShift, ...]
    holidays: Holidays | None
    zone: ZoneInfo

    def over(self, now: datetime) -> datetime:
        """Return `now` if the person may be interrupted, else the next time.

        A year without working hours has no next time: then the last day that was searched.
        """
        for _ in range(MAX_DAYS):
            later = now if self.quiet is None else self.quiet.over(now)
            if self.shifts or self.holidays is not None:
                later = self._next_shift(later)
            if later == now:
                break
            now = later
        return now

    def _next_shift(self, now: datetime) -> datetime:
        day = now.astimezone(self.zone).date() - _DAY
        for _ in range(MAX_DAYS):
            times = [
                shift.of(day, self.zone)
                for shift in self.shifts or ALWAYS
                if shift.weekday == day.weekday()
                and (self.holidays is None or day not in self.holidays)
            ]
            if ends := [max(now, begin) for begin, end in times if now < end]:
                return min(ends)
            day += _DAY
        return local_instant(day, time.min, self.zone, last=False)


def parse_working_hours(text: str) -> tuple[WorkShift, ...]:
    """Parse `Mon-Thu 09:00-17:00, Fri 09:00-13:00`; raises ValueError."""
    shifts: list[WorkShift] = []
    for part in text.split(","):
        match = _PART.fullmatch(part.strip().lower())
        if match is None or not {match["first"], match["last"] or match["first"]} <= {*DAYS}:
            raise ValueError(f"must be days and hours, such as {EXAMPLE}, Sat 10:00-12:00")
        first = DAYS.index(match["first"])
        count = (DAYS.index(match["last"] or match["first"]) - first) % 7 + 1
        start = time.fromisoformat(match["start"])
        end = time.min if match["end"] == "24:00" else time.fromisoformat(match["end"])
        if start == end and match["end"] != "24:00":
            raise ValueError("two times of working hours are the same; use 00:00-24:00 for a day")
        shifts += [WorkShift((first + day) % 7, start, end) for day in range(count)]
    return tuple(shifts)
