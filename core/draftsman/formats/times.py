"""Times and durations as text."""

from __future__ import annotations

import math
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from draftsman.formats.shown_zone import shown


def span(seconds: float) -> str:
    """Return a duration with two digits and a unit: `42 s`, `12 min`, `3.5 h`, `4 d`."""
    seconds = abs(seconds)
    if seconds < 0.95:
        return "0 s" if seconds < 0.05 else f"{_rounded(seconds, 1)} s"
    if seconds < 99.5:
        return f"{_rounded(seconds)} s"
    if seconds < 5400:
        return f"{_rounded(seconds / 60)} min"
    if seconds < 36 * 3600:
        hours = seconds / 3600
        return _rounded(hours, 1 if hours < 9.95 else 0).removesuffix(".0") + " h"
    return f"{_rounded(seconds / 86_400)} d"


def _rounded(value: float, digits: int = 0) -> str:
    """Round half up, where Python rounds 2.5 to 2 and 3.5 to 4."""
    scale = 10**digits
    return f"{math.floor(value * scale + 0.5) / scale:.{digits}f}"


def age(moment: datetime, now: datetime | None = None) -> str:
    """Return the time since a moment: `12 min`."""
    return span(((now or datetime.now(UTC)) - moment).total_seconds())


def ago(moment: datetime, now: datetime | None = None) -> str:
    """Return the time since a moment: `12 min ago`, or `now`."""
    seconds = ((now or datetime.now(UTC)) - moment).total_seconds()
    return "now" if seconds < 1 else f"{span(seconds)} ago"


def until(moment: datetime, now: datetime | None = None) -> str:
    """Return the time until a moment: `in 12 min`, or `due` if it passed."""
    seconds = (moment - (now or datetime.now(UTC))).total_seconds()
    return f"in {span(seconds)}" if seconds > 0 else "due"


def due(seconds: float | None) -> str:
    """Return a delay: `in 12 min`, or `now`."""
    return f"in {span(seconds)}" if seconds is not None and seconds > 0 else "now"


def format_time(moment: datetime, *, seconds: bool = False) -> str:
    """Return a time with its zone: `2026-11-30 17:00 UTC`."""
    return f"{shown(moment):%Y-%m-%d %H:%M{':%S' if seconds else ''} %Z}".rstrip()


def spelled_time(moment: datetime) -> str:
    """Return a time for messages, with its zone: `22 Nov 2026, 07:48 UTC`."""
    here = shown(moment)
    return f"{here.day} {here:%b %Y, %H:%M %Z}".rstrip()


def in_zone(moment: datetime, zone: str) -> str:
    """Return a time in an IANA time zone, with weekday and offset: `Mon 2026-11-30 02:00 +0100`."""
    return f"{moment.astimezone(_zone(zone)):%a %Y-%m-%d %H:%M %z}"


def clock(
    moment: datetime,
    now: datetime | None = None,
    *,
    zone: tzinfo | None = None,
    narrow: bool = False,
) -> str:
    """Return the time of day, with the date if it is not today: for columns and lines of a list.

    `zone`: default that of shown times. `narrow`: another day without year and seconds,
    `11-30 17:00`.
    """
    here = shown(moment, zone)
    if here.date() == shown(now or datetime.now(UTC), zone).date():
        return f"{here:%H:%M:%S}"
    return f"{here:%m-%d %H:%M}" if narrow else f"{here:%Y-%m-%d %H:%M:%S}"


def clock_with_zone(moment: datetime, now: datetime | None = None) -> str:
    """Return the time of day for a sentence: `17:00:00 CET`, with the date if it is not today."""
    return f"{clock(moment, now)} {shown(moment):%Z}".rstrip()


_zone = lru_cache(maxsize=1000)(ZoneInfo)
