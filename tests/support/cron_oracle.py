"""An oracle of cron occurrences: it looks at the clock of a zone minute by minute.

It shares no code with the module that it tests: neither cronsim nor arithmetic on wall times.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from typing import Final
from zoneinfo import ZoneInfo

from draftsman.schedules.schedule import Timing

MINUTE: Final = timedelta(minutes=1)
LIMITS: Final = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
EXPRESSIONS: Final = (
    "30 2 * * *",
    "0 * * * *",
    "*/15 * * * *",
    "*/20 1,2 * * *",
    "0,30 0-3 * * *",
    "45 1 * * 0",
    "10 0 1,15 * 1",
    "15 */2 * * *",
)
"""Fixed and repeated times around the hours at which clocks are moved."""
STARTS: Final = (-180, -61, -30, -1, 0, 1, 30, 59, 90)
"""Minutes after a transition from which the next occurrences are asked for."""


def transitions(zone: ZoneInfo, first: int, last: int) -> Iterator[datetime]:
    """Yield the instants, to the minute, at which the offset changes in these years."""
    at = datetime(first, 1, 1, tzinfo=UTC)
    end = datetime(last, 1, 1, tzinfo=UTC)
    step = timedelta(hours=12)
    while at < end:
        if at.astimezone(zone).utcoffset() != (at + step).astimezone(zone).utcoffset():
            low = at
            high = at + step
            while high - low > MINUTE:
                middle = low + MINUTE * ((high - low) // MINUTE // 2)
                same = low.astimezone(zone).utcoffset() == middle.astimezone(zone).utcoffset()
                low, high = (middle, high) if same else (low, middle)
            yield high
        at += step


def occurrences(
    expression: str, zone: ZoneInfo, start: datetime, end: datetime
) -> Iterator[datetime]:
    """Yield the occurrences in (start, end], both on whole minutes in UTC."""
    fixed = not expression.split()[0].startswith("*") and not expression.split()[1].startswith("*")
    seen: set[datetime] = set()
    at = start - timedelta(hours=4)  # for the times that the clock repeats
    clock = at.astimezone(zone).replace(tzinfo=None)
    while at < end:
        at += MINUTE
        before = clock
        clock = at.astimezone(zone).replace(tzinfo=None)
        due = _matches(expression, clock)
        if fixed:
            due = due and clock not in seen
            seen.add(clock)
            skipped = before + MINUTE
            while skipped < clock:
                due = due or _matches(expression, skipped)
                seen.add(skipped)
                skipped += MINUTE
        if due and at > start:
            yield at


def compare(zone: str, transition: datetime) -> int:
    """Compare all expressions around a transition; return the number of comparisons."""
    info = ZoneInfo(zone)
    end = transition + timedelta(hours=5)
    tried = 0
    for expression in EXPRESSIONS:
        first = transition + STARTS[0] * MINUTE
        expected = list(occurrences(expression, info, first, end))
        for start in (transition + minutes * MINUTE for minutes in STARTS):
            timing = Timing(expression, zone, start)
            found = list(takewhile(lambda at: at <= end, timing.after(start)))
            assert found == [at for at in expected if at > start], (zone, expression, start)
            tried += 1
    return tried


def _matches(expression: str, clock: datetime) -> bool:
    minute, hour, day, month, weekday = (
        _values(field, *limits) for field, limits in zip(expression.split(), LIMITS, strict=True)
    )
    in_month = clock.day in day
    in_week = clock.isoweekday() in weekday or (clock.isoweekday() == 7 and 0 in weekday)
    fields = expression.split()
    both = fields[2].startswith("*") or fields[4].startswith("*")
    on_day = (in_month and in_week) if both else (in_month or in_week)
    return clock.minute in minute and clock.hour in hour and clock.month in month and on_day


def _values(field: str, low: int, high: int) -> set[int]:
    values: set[int] = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        first, _, last = ("", "", "") if span == "*" else span.partition("-")
        begin = int(first or low)
        end = high if span == "*" or (step and not last) else int(last or first)
        values.update(range(begin, end + 1, int(step or 1)))
    return values
