"""Durations and times as people write them: `90s`, `1h30m`, `2030-12-31T18:00`. Pure."""

from __future__ import annotations

import contextlib
import re
from datetime import datetime
from typing import Final

from draftsman.errors import UsageError

_UNITS: Final = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
_PART = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)\s*([smhdw])", re.IGNORECASE)
_DURATION = re.compile(rf"(?:{_PART.pattern}\s*)+", re.IGNORECASE)
MAX_DURATION: Final = 366 * 86_400.0
"""Maximum duration in seconds."""
YEARS: Final = range(2000, 3000)
"""Allowed years of a time."""


class OutOfRange(UsageError):
    """A duration that is too short or too long."""


def parse_duration(text: str, *, most: float = MAX_DURATION) -> float:
    """Parse `90s`, `10m`, `2h`, `1d` or `1h30m` into seconds; a bare number is seconds.

    Raises UsageError.
    """
    text = text.strip()
    if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,3})?", text):
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


def parse_instant(text: str) -> datetime:
    """Parse an ISO 8601 time; without an offset it is local. Raises UsageError."""
    moment = None
    with contextlib.suppress(ValueError):
        moment = datetime.fromisoformat(text.strip())
    if moment is None or moment.year not in YEARS:
        raise UsageError(
            f"invalid time {text!r}; example: 2030-12-31T18:00, with +02:00 or Z if not local"
        )
    return moment.astimezone() if moment.tzinfo is None else moment
