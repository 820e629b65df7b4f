"""Quiet hours: when people are not reminded, by the clock on their wall. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

NONE = "none"
"""What somebody writes who has no quiet hours, whatever the default is."""
DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class QuietHours:
    """From `start` to `end` of every day, over midnight where `end` comes first; never all day.

    Where the clocks are set back over one of them, the hours last from its first `start` to its
    last `end`; where they are set forward over one, it is the moment when that happens.
    """

    start: time
    end: time
    zone: ZoneInfo

    def over(self, now: datetime) -> datetime:
        """Return `now` where it is not quiet, else when the quiet hours are over."""
        while (end := self._end(now)) is not None:
            now = end
        return now

    def _end(self, now: datetime) -> datetime | None:
        """Return the end of the quiet hours that `now` is in."""
        today = now.astimezone(self.zone).date()
        for day in (today - DAY, today, today + DAY):
            begin = _instant(day, self.start, self.zone, last=False)
            after = day if self.start < self.end else day + DAY
            end = _instant(after, self.end, self.zone, last=True)
            if begin <= now < end:
                return end
        return None


def parse(hours: str | None, zone: str) -> QuietHours | None:
    """Read `22:00-07:00`, as the configuration has checked it; None for none."""
    if hours is None or hours == NONE:
        return None
    start, _, end = hours.partition("-")
    return QuietHours(time.fromisoformat(start), time.fromisoformat(end), ZoneInfo(zone))


def next_allowed(now: datetime, hours: Iterable[QuietHours | None]) -> datetime:
    """Return when the first of them may be reminded: `now` if anybody may."""
    return min((now if one is None else one.over(now) for one in hours), default=now)


def _instant(day: date, wall: time, zone: ZoneInfo, *, last: bool) -> datetime:
    """Return when a clock shows this, for the first or the last time."""
    shown = datetime.combine(day, wall, zone).replace(fold=int(last))
    found = shown.astimezone(UTC)
    if found.astimezone(zone).replace(tzinfo=None) == shown.replace(tzinfo=None):
        return found
    return _jump(shown)


def _jump(skipped: datetime) -> datetime:
    """Return when the clocks are set forward over a time that they never show."""
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
