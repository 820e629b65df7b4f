"""Durations and times as people write them: `90s`, `1h30m`, `yesterday 9:00`. Pure."""

from __future__ import annotations

import contextlib
import re
from datetime import UTC, datetime, time, timedelta
from typing import Final

from draftsman.errors import UsageError
from draftsman.formats.shown_zone import shown, typed

_UNITS: Final = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
_PART = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)\s*([smhdw])", re.IGNORECASE)
_DURATION = re.compile(rf"(?:{_PART.pattern}\s*)+", re.IGNORECASE)
_BARE_SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,3})?")
MAX_DURATION: Final = 366 * 86_400.0
"""Maximum duration in seconds."""
_DAYS: Final = {"yesterday": -1, "today": 0, "tomorrow": 1}
_DAY_AND_TIME = re.compile(
    r"(?P<day>yesterday|today|tomorrow)|(?:(?:(?P<time_of>yesterday|today|tomorrow)\s+)?"
    r"|(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2})\s+)(?P<time>[0-9]{1,2}:[0-9]{2})",
    re.IGNORECASE,
)
YEARS: Final = range(2000, 3000)
"""Allowed years of a time."""


class OutOfRange(UsageError):
    """A duration that is too short or too long."""


def parse_duration(text: str, *, most: float = MAX_DURATION) -> float:
    """Parse `90s`, `10m`, `2h`, `1d` or `1h30m` into seconds; a bare number is seconds.

    Raises UsageError.
    """
    text = text.strip()
    if _BARE_SECONDS.fullmatch(text):
        seconds = float(text)
    elif _DURATION.fullmatch(text):
        seconds = sum(float(count) * _UNITS[unit.lower()] for count, unit in _PART.findall(text))
    else:
        raise UsageError(f"invalid duration {text!r}; examples: 90s, 10m, 2h, 1d, 1h30m")
    if not 0 < seconds <= most:
        longest = format_duration(most)
        raise OutOfRange(f"duration {text!r} is out of range; allowed: 1s to {longest}")
    return seconds


def format_duration(seconds: float) -> str:
    """Format seconds for `parse_duration`, in the longest exact unit, e.g. `2h`."""
    for unit, long in (("d", 86_400), ("h", 3600), ("m", 60)):
        if seconds % long == 0:
            return f"{seconds / long:.0f}{unit}"
    return f"{seconds:.3f}".rstrip("0").rstrip(".") + "s"


def parse_instant(text: str, now: datetime | None = None) -> datetime:
    """Parse an ISO 8601 time, `2030-12-31 9:00`, `tomorrow 9:00` or `9:00`, which is today.

    Without an offset it is in the zone of shown times. Raises UsageError.
    """
    moment = None
    with contextlib.suppress(ValueError, OverflowError):
        moment = _of_words(text.strip(), now) or datetime.fromisoformat(text.strip())
    if moment is None or moment.year not in YEARS:
        raise UsageError(
            f"invalid time {text!r}; examples: 2030-12-31T18:00, with +02:00 or Z if not local,"
            " 2030-12-31, tomorrow 9:00"
        )
    return typed(moment)


def _of_words(text: str, now: datetime | None) -> datetime | None:
    """Return the local time of a day and a time of day; None for another notation."""
    if (match := _DAY_AND_TIME.fullmatch(text)) is None:
        return None
    day = shown(now or datetime.now(UTC)).date()
    if match["date"]:
        day = datetime.fromisoformat(match["date"]).date()
    elif word := match["day"] or match["time_of"]:
        day += timedelta(days=_DAYS[word.lower()])
    clock = time.fromisoformat((match["time"] or "00:00").rjust(5, "0"))
    return datetime.combine(day, clock)


def parse_age(text: str, now: datetime | None = None) -> float | datetime:
    """Parse a duration into seconds, or a time such as `yesterday 9:00`. Raises UsageError."""
    if _BARE_SECONDS.fullmatch(text.strip()) or _DURATION.fullmatch(text.strip()):
        return parse_duration(text)
    try:
        return parse_instant(text, now)
    except UsageError:
        raise UsageError(
            f"invalid time {text!r}; examples: 2h, 1d, 2026-11-30, 9:00, yesterday 9:00"
        ) from None


def parse_since(text: str, now: datetime | None = None) -> float:
    """Parse a duration, or a time in the past, into the seconds since then. Raises UsageError."""
    moment = parse_age(text, now)
    if not isinstance(moment, datetime):
        return moment
    seconds = ((now or datetime.now(UTC)) - moment).total_seconds()
    if not 0 < seconds <= MAX_DURATION:
        when = "in the future" if seconds <= 0 else "more than 366 days ago"
        raise OutOfRange(f"{text!r} is {when}; use a time of the last 366 days")
    return seconds
