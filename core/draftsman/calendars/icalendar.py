"""iCalendar: the events of a calendar, with their repetitions, by RFC 5545."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

from draftsman.errors import UsageError

MAX_BYTES: Final = 2_000_000
"""Maximum size of a calendar."""
MAX_LINES: Final = 50_000
"""Maximum lines of a calendar, each of which takes the parser time."""
MAX_EVENTS: Final = 20_000
"""Maximum number of events of the time that is read."""
MAX_STEPS: Final = 500_000
"""Maximum repetitions from the first event on; each before the time takes a step, too."""
_DAYS: Final = {"DAILY": 1, "WEEKLY": 7, "MONTHLY": 28, "YEARLY": 365}
"""Days between the repetitions of a rule."""
_WEEKDAYS: Final = {"MONTHLY": 5, "YEARLY": 53}
"""Repetitions of a day of the week without a number, as `MO`."""


@dataclass(frozen=True, slots=True)
class CalendarEvent:
    """An event; a time without a zone is local time."""

    title: str
    start: datetime
    end: datetime
    whole_days: range
    """The days of an event that lasts whole days, as ordinals; empty for any other."""


def read_events(data: bytes, start: datetime, end: datetime, zone: ZoneInfo) -> list[CalendarEvent]:
    """Return the events of a time, in order; raises UsageError for an invalid calendar.

    Rules that repeat more often than daily are refused, and more than `MAX_EVENTS` repetitions, so
    that a calendar cannot use up memory.
    """
    import recurring_ical_events  # type: ignore[import-untyped]
    from icalendar import Calendar

    if len(data) > MAX_BYTES:
        raise UsageError(f"a calendar has more than {MAX_BYTES:,} bytes")
    if data.count(b"\n") > MAX_LINES:
        raise UsageError(f"a calendar has more than {MAX_LINES:,} lines")
    try:
        calendar = Calendar.from_ical(data)
        _check_repetitions(calendar, start.date(), end.date())
        occurrences = recurring_ical_events.of(calendar).between(start, end)
        events = [_event(item, zone) for item in occurrences[:MAX_EVENTS]]
    except UsageError:
        raise
    except Exception as error:  # the parser has no common error
        raise UsageError(f"not a calendar in the format iCalendar: {error}") from error
    return sorted(events, key=lambda event: (event.start, event.end, event.title))


def _check_repetitions(calendar: Any, start: date, end: date) -> None:
    """Raise UsageError for repetitions that are too frequent or too many to be read."""
    events = 0.0
    steps = 0.0
    for component in calendar.walk("VEVENT"):
        events += sum(len(dates.dts) for dates in _listed(component.get("RDATE")))
        for rule in _listed(component.get("RRULE")):
            first = _day(component["DTSTART"].dt)
            last = _day(component.end)
            length = max(0, (last - first).days)
            rate = _daily_rate({key.upper(): numbers for key, numbers in rule.items()})
            events += ((end - start).days + length + 1) * rate + 1
            steps += max(0, (end - first).days) * rate
    if events > MAX_EVENTS or steps > MAX_STEPS:
        raise UsageError(f"the events of the calendar repeat more than {MAX_EVENTS:,} times")


def _daily_rate(rule: Mapping[str, Sequence[Any]]) -> float:
    """Return the maximum repetitions of a rule in a day; raises UsageError above one."""
    frequency = str(*rule.get("FREQ", ())).upper()
    if {"BYHOUR", "BYMINUTE", "BYSECOND"} & rule.keys() or frequency not in _DAYS:
        raise UsageError("an event of the calendar repeats more often than daily")
    count = 1
    for name, numbers in rule.items():
        if name == "BYDAY":
            by_name = _WEEKDAYS.get(frequency, 1)
            count *= sum(1 if str(day).strip("+-")[:1].isdigit() else by_name for day in numbers)
        elif name.startswith("BY") and name != "BYSETPOS":
            count *= len(numbers)
    return min(1.0, count / _DAYS[frequency])


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _day(value: date | datetime) -> date:
    return value.date() if isinstance(value, datetime) else value


def _event(item: Any, zone: ZoneInfo) -> CalendarEvent:
    start = item["DTSTART"].dt
    end = item["DTEND"].dt
    days = range(0)
    if not isinstance(start, datetime):
        first = start.toordinal()
        days = range(first, max(first + 1, end.toordinal()))
    title = str(item.get("SUMMARY", ""))
    return CalendarEvent(title, _instant(start, zone), _instant(end, zone), days)


def _instant(value: date | datetime, zone: ZoneInfo) -> datetime:
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)  # noqa: DTZ001 - local time
    return (value if value.tzinfo is not None else value.replace(tzinfo=zone)).astimezone(UTC)
