"""Types of settings: hours, time zones, and choices of ladders."""

from __future__ import annotations

from typing import Annotated, Literal
from zoneinfo import ZoneInfo

from pydantic import AfterValidator

from draftsman.field_errors import matching


def _check_zone(value: str) -> str:
    try:
        ZoneInfo(value)
    except (KeyError, ValueError, OSError):
        raise ValueError("unknown time zone; use a name such as Europe/Berlin") from None
    return value


def _check_hours(value: str) -> str:
    if value[:5] == value[6:]:
        raise ValueError("quiet hours never end; use two different times, or none")
    return value


_CLOCK = r"([01]\d|2[0-3]):[0-5]\d"
_Hours = Annotated[
    str,
    matching(rf"none|{_CLOCK}-{_CLOCK}", "must be two times, such as 22:00-07:00, or none"),
]
Hours = Annotated[_Hours, AfterValidator(_check_hours)]
"""Daily quiet hours such as `22:00-07:00`, or `none`."""
Zone = Annotated[str, AfterValidator(_check_zone)]
"""A name of the IANA time zone database."""
_DAY = r"(?i:mon|tue|wed|thu|fri|sat|sun)"
_SHIFT = rf"{_DAY}(-{_DAY})?\s+({_CLOCK})-({_CLOCK}|24:00)"


def _check_shifts(value: str) -> str:
    for part in value.split(","):
        start, _, end = part.rpartition(" ")[2].partition("-")
        if start == end:
            raise ValueError("working hours that never end; use two different times")
    return value


WorkingHours = Annotated[
    str,
    matching(
        rf"none|{_SHIFT}(\s*,\s*{_SHIFT})*",
        "must be days and hours, such as Mon-Fri 09:00-17:00, Sat 10:00-12:00, or none",
    ),
    AfterValidator(_check_shifts),
]
"""Hours of the week such as `Mon-Fri 09:00-17:00`, or `none`."""


LadderKind = Literal["input", "approval", "critical"]
LadderChoice = dict[
    LadderKind,
    Annotated[str, matching(r"[A-Za-z0-9_-]{1,100}", "allowed: letters, digits, - and _")],
]
"""The ladder of each kind of question; `none`: no ladder."""
