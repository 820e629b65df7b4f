"""Durations and times as people write them: `90s`, `1h30m`, `yesterday 9:00`. Pure."""

from __future__ import annotations

import contextlib
import re
from datetime import UTC, datetime, time, timedelta
from typing import Final

from draftsman.errors import UsageError
from draftsman.formats.shown_zone import shown, typed

_UNIT_NAMES: Final = {
    1.0: "s sec secs second seconds",
    60.0: "m min mins minute minutes",
    3600.0: "h hr hrs hour hours",
    86_400.0: "d day days",
    604_800.0: "w week weeks",
}
UNITS: Final = {name: unit for unit, names in _UNIT_NAMES.items() for name in names.split()}
"""Seconds of each name of a unit."""
_PART = re.compile(
    rf"([0-9]{{1,9}}(?:\.[0-9]{{1,3}})?)\s*({'|'.join(UNITS)})(?![a-z])", re.IGNORECASE
)
_DURATION = re.compile(rf"(?:{_PART.pattern}\s*)+", re.IGNORECASE)
_NO_UNIT = re.compile(r"[0-9]{1,9}(\.[0-9]{1,3})?")
_AGO = re.compile(r"-(.+)|(.+)\s+ago", re.IGNORECASE)
MAX_DURATION: Final = 366 * 86_400.0
"""Maximum duration in seconds."""
_DAYS: Final = {"yesterday": -1, "today": 0, "tomorrow": 1}
_WEEKDAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DAY_NAME: Final = (
    "yesterday|today|tomorrow"
    "|mon(?:day)?|tue(?:sday)?|wed(?:nesday)?|thu(?:rsday)?|fri(?:day)?|sat(?:urday)?|sun(?:day)?"
)
_DAY_AND_TIME = re.compile(
    rf"(?P<day>{_DAY_NAME})|(?:(?:(?P<time_of>{_DAY_NAME})\s+)?"
    r"|(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2})\s+)(?P<time>[0-9]{1,2}:[0-9]{2})",
    re.IGNORECASE,
)
YEARS: Final = range(2000, 3000)
"""Allowed years of a time."""


_JUST_NOW: Final = 0.001
"""Age of `now` in seconds: callers take 0 for no bound."""


class OutOfRange(UsageError):
    """A duration that is too short or too long."""


class NoUnit(UsageError):
    """A number without a unit of time."""

    def __init__(self, text: str) -> None:
        super().__init__(f"duration {text!r} has no unit; use {text}s, {text}m, {text}h or {text}d")


def parse_duration(text: str, *, most: float = MAX_DURATION) -> float:
    """Parse `90s`, `10m`, `2 h`, `3 min` or `1h30m` into seconds.

    Raises UsageError, NoUnit for a bare number.
    """
    text = text.strip()
    if _NO_UNIT.fullmatch(text):
        raise NoUnit(text)
    if _DURATION.fullmatch(text):
        seconds = sum(float(count) * UNITS[unit.lower()] for count, unit in _PART.findall(text))
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


def parse_instant(text: str, now: datetime | None = None, *, is_past: bool = False) -> datetime:
    """Parse an ISO 8601 time, `2030-12-31 9:00`, `tomorrow 9:00`, `9:00` of today, or `now`.

    A weekday, `monday 9:00`, is the next one, or the last one with `is_past`. Without an offset the
    time is in the zone of shown times. Raises UsageError.
    """
    now = now or datetime.now(UTC)
    if text.strip().lower() == "now":
        return now
    moment = None
    with contextlib.suppress(ValueError, OverflowError):
        moment = _of_words(text.strip(), now, is_past) or datetime.fromisoformat(text.strip())
    if moment is None or moment.year not in YEARS:
        raise UsageError(
            f"invalid time {text!r}; examples: 2030-12-31T18:00, with +02:00 or Z if not local,"
            " 2030-12-31, tomorrow 9:00, monday 9:00"
        )
    return typed(moment)


def _of_words(text: str, now: datetime, is_past: bool) -> datetime | None:
    """Return the local time of a day and a time of day; None for another notation."""
    if (match := _DAY_AND_TIME.fullmatch(text)) is None:
        return None
    local = shown(now)
    day = local.date()
    clock = time.fromisoformat((match["time"] or "00:00").rjust(5, "0"))
    word = (match["day"] or match["time_of"] or "").lower()
    if match["date"]:
        day = datetime.fromisoformat(match["date"]).date()
    elif word[:3] in _WEEKDAYS:
        day += timedelta(days=(_WEEKDAYS.index(word[:3]) - day.weekday()) % 7)
        if (day, clock) > (local.date(), local.time()) and is_past:
            day -= timedelta(days=7)
        elif (day, clock) <= (local.date(), local.time()) and not is_past:
            day += timedelta(days=7)
    elif word:
        day += timedelta(days=_DAYS[word])
    return datetime.combine(day, clock)


def parse_age(text: str, now: datetime | None = None) -> float | datetime:
    """Parse an age, `2h`, `2 h ago` or `-2h`, into seconds, or a time such as `yesterday 9:00`.

    Raises UsageError.
    """
    text = text.strip()
    ago = _AGO.fullmatch(text)
    duration = (ago[1] or ago[2]).strip() if ago else text
    if _NO_UNIT.fullmatch(duration) or _DURATION.fullmatch(duration):
        return parse_duration(duration)
    try:
        return parse_instant(text, now, is_past=True)
    except UsageError:
        raise UsageError(
            f"invalid time {text!r}; examples: 2h, 1d, 2026-11-30, 9:00, yesterday 9:00, monday"
        ) from None


def parse_since(text: str, now: datetime | None = None) -> float:
    """Parse an age, or a time in the past, into the seconds since then. Raises UsageError."""
    now = now or datetime.now(UTC)
    moment = parse_age(text, now)
    if not isinstance(moment, datetime):
        return moment
    seconds = (now - moment).total_seconds()
    if not 0 <= seconds <= MAX_DURATION:
        when = "in the future" if seconds < 0 else "more than 366 days ago"
        raise OutOfRange(f"{text!r} is {when}; use a time of the last 366 days")
    return max(seconds, _JUST_NOW)
