"""When a schedule is due: cron expressions in time zones, intervals, and single instants.

cronsim evaluates an expression in wall time, without a zone. Instants follow the rules of Debian
cron: an expression with a fixed minute and hour runs once, after the gap if the clock skips its
time, and the first time if the clock repeats it; any other expression runs whenever the clock
shows its time.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError

from draftsman.errors import UsageError

RULES: Final = "examples: '0 9 * * mon-fri', '@every 90m', '@daily', '@at 2030-12-31T18:00:00Z'"
_NAMED: Final = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_EVERY: Final = re.compile(r"(?:[0-9]+[smhdw])+")
MIN_INTERVAL: Final = 60
MAX_INTERVAL: Final = 366 * 86400
"""Seconds between two occurrences of `@every`."""
_SHIFTS: Final = tuple(timedelta(hours=hours) for hours in (0, 1, 2, 3, 24))
"""Distances at which a change of the clock is searched for: it moves by at most a day."""
_START: Final = datetime.fromisoformat("2024-01-01")
"""A wall time from which a new expression is tried."""
_SECOND: Final = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Timing:
    """A rule and its time zone. `anchor` is the instant from which `@every` counts."""

    rule: str
    zone: str
    anchor: datetime

    def after(self, instant: datetime) -> Iterator[datetime]:
        """Yield the occurrences after an instant, in order, in UTC."""
        if self.rule.startswith("@every "):
            seconds = _interval(self.rule)
            count = max((instant - self.anchor) // timedelta(seconds=seconds), 0)
            while True:
                count += 1
                yield self.anchor + timedelta(seconds=count * seconds)
        elif self.rule.startswith("@at "):
            at = _instant(self.rule)
            if at > instant:
                yield at
        else:
            yield from _cron(_NAMED.get(self.rule, self.rule), find_zone(self.zone), instant)

    def next(self, instant: datetime) -> datetime | None:
        """Return the first occurrence after an instant, or None."""
        return next(self.after(instant), None)


def parse_rule(text: str, zone: str) -> str:
    """Return a rule in its normal form; raises UsageError if it never occurs or is invalid."""
    rule = " ".join(text.split())
    find_zone(zone)
    if rule.startswith("@every"):
        _interval(rule)
    elif rule.startswith("@at"):
        rule = f"@at {_instant(rule).isoformat().replace('+00:00', 'Z')}"
    elif rule.startswith("@"):
        if rule not in _NAMED:
            raise UsageError(f"unknown rule {rule[:60]!r}; {RULES}")
    else:
        _expression(rule)
        if next(_walls(rule, _START), None) is None:
            raise UsageError(f"cron {rule[:60]!r} never occurs")
    return rule


def find_zone(name: str) -> ZoneInfo:
    """Return an IANA time zone; raises UsageError."""
    try:
        return _zone(name)
    except (KeyError, ValueError, OSError):
        from difflib import get_close_matches

        near = get_close_matches(name, sorted(available_timezones()), 3, 0.5)
        tail = f"; did you mean {' or '.join(near)}?" if near else ""
        raise UsageError(
            f"unknown time zone {name[:60]!r}{tail}; use an IANA name such as Europe/Berlin"
        ) from None


@lru_cache(maxsize=1000)
def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)


def _interval(rule: str) -> int:
    text = rule.removeprefix("@every").strip()
    if _EVERY.fullmatch(text) is None:
        raise UsageError(f"{rule[:60]!r}: invalid interval; examples: @every 90m, @every 1h30m")
    parts = re.findall(r"([0-9]+)([smhdw])", text)
    seconds = sum(min(int(count), MAX_INTERVAL + 1) * _UNITS[unit] for count, unit in parts)
    if not MIN_INTERVAL <= seconds <= MAX_INTERVAL:
        raise UsageError(f"{rule[:60]!r}: an interval is at least 60s and at most 366d")
    return seconds


def _instant(rule: str) -> datetime:
    text = rule.removeprefix("@at").strip()
    try:
        at = datetime.fromisoformat(text)
        if at.tzinfo is None:
            raise ValueError
        return at.astimezone(UTC).replace(microsecond=0)
    except (ValueError, OverflowError):
        raise UsageError(
            f"{rule[:60]!r}: invalid time; example: @at 2030-12-31T18:00:00Z"
        ) from None


def _expression(rule: str) -> None:
    """Raise UsageError for a cron expression that is not valid."""
    fields = rule.split()
    if len(fields) != 5:
        raise UsageError(
            f"cron {rule[:60]!r} has {len(fields)} field{'' if len(fields) == 1 else 's'}, not 5"
            " (minute, hour, day of month, month, day of week); " + RULES
        )
    try:
        CronSim(rule, _START)
    except (CronSimError, AssertionError, ValueError, RecursionError) as error:
        problem = str(error).removeprefix("Bad ") or "an invalid field"
        raise UsageError(f"cron {rule[:60]!r}: invalid {problem}; {RULES}") from None


def _walls(expression: str, after: datetime) -> Iterator[datetime]:
    """Yield the wall times of an expression after a wall time."""
    try:
        yield from CronSim(expression, after)
    except (RuntimeError, OverflowError):  # StopIteration inside of a generator; the year 9999
        return


def _cron(expression: str, zone: ZoneInfo, instant: datetime) -> Iterator[datetime]:
    """Yield the instants of an expression after an instant."""
    minute, hour = expression.split()[:2]
    fixed = not minute.startswith("*") and not hour.startswith("*")
    walls = _walls(expression, _first_wall(zone, instant) - _SECOND)
    repeated: list[datetime] = []
    last = instant
    for wall in walls:
        first, second = (wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
        if first > second:  # the clock skips this time
            if not fixed:
                continue
            first = _end_of_gap(zone, second, first)
        while repeated and repeated[0] <= first:
            if (due := heapq.heappop(repeated)) > last:
                yield (last := due)
        if first > last:
            yield (last := first)
        if second > first and not fixed:
            heapq.heappush(repeated, second)
    while repeated:
        yield heapq.heappop(repeated)


def _first_wall(zone: ZoneInfo, instant: datetime) -> datetime:
    """Return the earliest wall time that the clock shows at an instant or later."""
    offsets = [(instant + shift).astimezone(zone).utcoffset() or timedelta() for shift in _SHIFTS]
    return (instant + min(offsets)).replace(tzinfo=None, microsecond=0) + (
        _SECOND if instant.microsecond else timedelta()
    )


def _end_of_gap(zone: ZoneInfo, low: datetime, high: datetime) -> datetime:
    """Return the instant between two others at which the clock of a zone is moved."""
    before = low.astimezone(zone).utcoffset()
    while high - low > _SECOND:
        middle = low + (high - low) // 2
        if middle.astimezone(zone).utcoffset() == before:
            low = middle
        else:
            high = middle
    return high.replace(microsecond=0)
