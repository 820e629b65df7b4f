"""Parsing and formatting of times and durations."""

from __future__ import annotations

import contextlib
from datetime import datetime
from typing import Final

from draftsman.durations import MAX_DURATION, OutOfRange, format_duration, parse_duration
from draftsman.errors import UsageError
from draftsman.times import age, ago, clock, due, span, until

__all__ = [
    "MAX_DURATION",
    "YEARS",
    "OutOfRange",
    "age",
    "ago",
    "clock",
    "due",
    "format_duration",
    "in_zone",
    "parse_duration",
    "parse_instant",
    "span",
    "until",
]

YEARS: Final = range(2000, 3000)
"""Allowed years of a time."""


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


def in_zone(moment: datetime, zone: str) -> str:
    """Format a time in an IANA time zone, with the offset: `Mon 2026-11-30 02:00 +0100`."""
    from draftsman.schedules import schedule  # its parser of cron loads slowly

    return schedule.in_zone(moment, zone)
