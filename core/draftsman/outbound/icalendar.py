"""iCalendar: the events of a calendar, with their repetitions, by RFC 5545."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from zoneinfo import ZoneInfo

from draftsman.errors import UsageError

MAX_BYTES: Final = 2_000_000
"""Maximum size of a calendar."""
MAX_EVENTS: Final = 20_000
"""Maximum number of events of the time that is read."""
PAST: Final = timedelta(days=400)
AHEAD: Final = timedelta(days=800)
"""Times of the holidays that are read, around now."""
_FREQUENCIES: Final = frozenset({"DAILY", "WEEKLY", "MONTHLY", "YEARLY"})


@dataclass(frozen=True, slots=True)
class CalendarEvent:
    """An event; a time without a zone is local time."""

    title: str
    start: datetime
    end: datetime
    days: frozenset[date]
    """The days of an event that lasts whole days."""


def read_events(data: bytes, start: datetime, end: datetime, zone: ZoneInfo) -> list[CalendarEvent]:
    """Return the events of a time, in order; raises UsageError for an invalid calendar.

    Rules that repeat more often than daily are refused, so that a calendar cannot use up memory.
    """
    import recurring_ical_events  # type: ignore[import-untyped]
    from icalendar import Calendar

    if len(data) > MAX_BYTES:
        raise UsageError(f"a calendar has more than {MAX_BYTES:,} bytes")
    try:
        calendar = Calendar.from_ical(data)
        _check_rules(calendar)
        found = recurring_ical_events.of(calendar).between(start, end)
        events = [_event(item, zone) for item in found[:MAX_EVENTS]]
    except UsageError:
        raise
    except Exception as error:  # the parser has no common error
        raise UsageError(f"not a calendar in the format iCalendar: {error}") from error
    return sorted(events, key=lambda event: (event.start, event.end, event.title))


def holidays_of(path: Path) -> Callable[[], frozenset[date]]:
    """Return a function that reads the days of a calendar file, again after it has changed.

    It keeps the days of a file that becomes unreadable; before, there are none.
    """
    state: tuple[float, frozenset[date]] = (-1.0, frozenset())

    def days() -> frozenset[date]:
        nonlocal state
        try:
            changed_at = path.stat().st_mtime
            if changed_at != state[0]:
                now = datetime.now(UTC)
                events = read_events(path.read_bytes(), now - PAST, now + AHEAD, ZoneInfo("UTC"))
                state = changed_at, frozenset(day for event in events for day in event.days)
        except (OSError, UsageError):
            pass
        return state[1]

    return days


def _check_rules(calendar: Any) -> None:
    for component in calendar.walk("VEVENT"):
        rules = component.get("RRULE", [])
        for rule in rules if isinstance(rules, list) else [rules]:
            by_time = {"BYHOUR", "BYMINUTE", "BYSECOND"} & {key.upper() for key in rule}
            if by_time or not {str(name).upper() for name in rule.get("FREQ", [])} <= _FREQUENCIES:
                raise UsageError("an event of the calendar repeats more often than daily")


def _event(item: Any, zone: ZoneInfo) -> CalendarEvent:
    start, end = item["DTSTART"].dt, item["DTEND"].dt
    days: set[date] = set()
    if not isinstance(start, datetime):
        days = {start + timedelta(days=number) for number in range(max(1, (end - start).days))}
    title = str(item.get("SUMMARY", ""))
    return CalendarEvent(title, _instant(start, zone), _instant(end, zone), frozenset(days))


def _instant(value: date | datetime, zone: ZoneInfo) -> datetime:
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)  # noqa: DTZ001 - local time
    return (value if value.tzinfo is not None else value.replace(tzinfo=zone)).astimezone(UTC)
