"""Times and lengths of time as people read them. Pure."""

from __future__ import annotations

from datetime import UTC, datetime


def span(seconds: float) -> str:
    """Format a duration with two digits and a unit: `42 s`, `12 min`, `3.5 h`, `4 d`."""
    seconds = abs(seconds)
    if seconds < 1:
        return "0 s" if seconds < 0.05 else f"{seconds:.1f} s"
    if seconds < 89.5:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    if seconds < 36 * 3600:
        hours = seconds / 3600
        return f"{hours:.1f} h" if hours < 9.95 else f"{hours:.0f} h"
    return f"{seconds / 86_400:.0f} d"


def age(moment: datetime, now: datetime | None = None) -> str:
    """Format the time since a moment, e.g. `12 min`."""
    return span(((now or datetime.now(UTC)) - moment).total_seconds())


def ago(moment: datetime, now: datetime | None = None) -> str:
    """Format the time since a moment, e.g. `12 min ago`."""
    seconds = ((now or datetime.now(UTC)) - moment).total_seconds()
    return "now" if seconds < 1 else f"{span(seconds)} ago"


def until(moment: datetime, now: datetime | None = None) -> str:
    """Format the time until a moment: `in 12 min`, or `due` if it passed."""
    seconds = (moment - (now or datetime.now(UTC))).total_seconds()
    return f"in {span(seconds)}" if seconds > 0 else "due"


def due(seconds: float | None) -> str:
    """Format a delay in seconds: `in 12 min`, or `now`."""
    return f"in {span(seconds)}" if seconds is not None and seconds > 0 else "now"


def clock(moment: datetime, now: datetime | None = None) -> str:
    """Format the local time of day, with the date if it is not today."""
    here = moment.astimezone()
    today = (now or datetime.now(UTC)).astimezone().date()
    return here.strftime("%H:%M:%S" if here.date() == today else "%Y-%m-%d %H:%M:%S")
