"""Hours of people: quiet hours of the day and working hours of the week, in local time. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from typing import Final, Protocol
from zoneinfo import ZoneInfo

NONE = "none"
"""Setting for no quiet hours, which overrides the default."""
DAY = timedelta(days=1)


class InterruptibleHours(Protocol):
    """Hours in which a person may be interrupted."""

    def over(self, now: datetime) -> datetime:
        """Return `now` if the person may be interrupted, else the next time."""
        ...


@dataclass(frozen=True, slots=True)
class QuietHours:
    """From `start` to `end` of every day, across midnight if `end` is earlier; never all day.

    A `start` or `end` that occurs twice, as clocks are set back, counts as the first `start` or the
    last `end`. If clocks are set forward over it, it is the moment of the change.
    """

    start: time
    end: time
    zone: ZoneInfo

    def over(self, now: datetime) -> datetime:
        """Return `now` outside of quiet hours, else their end."""
        while (end := self._end(now)) is not None:
            now = end
        return now

    def _end(self, now: datetime) -> datetime | None:
        """Return the end of the current quiet hours, or None."""
        today = now.astimezone(self.zone).date()
        for day in (today - DAY, today, today + DAY):
            begin = local_instant(day, self.start, self.zone, last=False)
            after = day if self.start < self.end else day + DAY
            end = local_instant(after, self.end, self.zone, last=True)
            if begin <= now < end:
                return end
        return None


def parse(hours: str | None, zone: str) -> QuietHours | None:
    """Parse validated hours such as `22:00-07:00`; None for no quiet hours."""
    if hours is None or hours == NONE:
        return None
    start, _, end = hours.partition("-")
    return QuietHours(time.fromisoformat(start), time.fromisoformat(end), ZoneInfo(zone))


def next_allowed(now: datetime, hours: Iterable[InterruptibleHours | None]) -> datetime:
    """Return the earliest time at which any of the people may be reminded."""
    times = (now if quiet is None else quiet.over(now) for quiet in hours)
    return min(times, default=now)


def local_instant(day: date, wall: time, zone: ZoneInfo, *, last: bool) -> datetime:
    """Return the first or last instant with this local time."""
    local = datetime.combine(day, wall, zone).replace(fold=int(last))
    instant = local.astimezone(UTC)
    if instant.astimezone(zone).replace(tzinfo=None) == local.replace(tzinfo=None):
        return instant
    return _jump(local)


def _jump(skipped: datetime) -> datetime:
    """Return the instant at which the clocks skip a local time."""
    before = int(skipped.replace(fold=1).timestamp())
    after = int(skipped.replace(fold=0).timestamp())
    zone = skipped.tzinfo
    offset = datetime.fromtimestamp(after, zone).utcoffset()
    while after - before > 1:
        middle = (before + after) // 2
        if datetime.fromtimestamp(middle, zone).utcoffset() == offset:
            after = middle
        else:
            before = middle
    return datetime.fromtimestamp(after, UTC)


# Working hours of the week, and the hours in which a person may be interrupted.


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
