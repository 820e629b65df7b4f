"""Quiet hours: daily hours without interruptions, in local time. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Protocol
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
