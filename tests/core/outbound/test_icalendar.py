"""Calendars: events, repetitions, exceptions and limits."""

from __future__ import annotations

import time
from datetime import UTC, date, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from draftsman.calendars.calendar_reader import read_calendar
from draftsman.calendars.holiday_calendar import holidays_of
from draftsman.calendars.icalendar import read_events
from draftsman.errors import UsageError
from tests.support.cases import cases

BERLIN = ZoneInfo("Europe/Berlin")
SPAN = datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 5, 1, tzinfo=UTC)


def calendar(*events: str) -> bytes:
    """Return a calendar with these events."""
    body = "".join(
        f"BEGIN:VEVENT\r\nUID:{number}\r\nDTSTAMP:20260101T000000Z\r\n{event}\r\nEND:VEVENT\r\n"
        for number, event in enumerate(events)
    )
    head = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//test//\r\n"
    return f"{head}{body}END:VCALENDAR\r\n".encode()


def test_weekly_shifts_keep_their_local_time_and_their_exceptions() -> None:
    shift = (
        "SUMMARY:anna\r\nDTSTART;TZID=Europe/Berlin:20260302T090000\r\n"
        "DTEND;TZID=Europe/Berlin:20260309T090000\r\nRRULE:FREQ=WEEKLY;INTERVAL=2;COUNT=4\r\n"
        "EXDATE;TZID=Europe/Berlin:20260316T090000"
    )
    moved = "SUMMARY:ben\r\nDTSTART:20260316T090000\r\nDTEND:20260317T090000"
    events = read_events(calendar(shift, moved), *SPAN, BERLIN)
    assert [(event.title, event.start) for event in events] == [
        ("anna", datetime(2026, 3, 2, 8, tzinfo=UTC)),
        ("ben", datetime(2026, 3, 16, 8, tzinfo=UTC)),
        ("anna", datetime(2026, 3, 30, 7, tzinfo=UTC)),
        ("anna", datetime(2026, 4, 13, 7, tzinfo=UTC)),
    ]


@cases(
    "data",
    [
        b"not a calendar",
        calendar("SUMMARY:x\r\nDTSTART:20260302T090000Z\r\nRRULE:FREQ=SECONDLY"),
        calendar("SUMMARY:x\r\nDTSTART:20260302T090000Z\r\nRRULE:FREQ=DAILY;BYSECOND=1,2"),
        calendar("DTSTART;VALUE=DATE:20000101\r\nDTEND;VALUE=DATE:20990101\r\nRRULE:FREQ=DAILY"),
        calendar(*["DTSTART:20260101T000000Z\r\nRRULE:FREQ=YEARLY;BYDAY=MO,TU,WE,TH,FR"] * 500),
        calendar(*["DTSTART:00010101T000000Z\r\nRRULE:FREQ=DAILY"] * 2),
        calendar(*["DTSTART:19700101T000000Z\r\nRRULE:FREQ=DAILY"] * 30),
        calendar("DTSTART:20260101T000000Z\r\n" + "X-A:b\r\n" * 50_000),
        b"x" * 2_000_001,
    ],
)
def test_other_files_and_frequent_rules_are_refused(data: bytes) -> None:
    with pytest.raises(UsageError, match="calendar"):
        read_events(data, *SPAN, BERLIN)


async def test_a_team_with_many_meetings_and_holidays_is_read() -> None:
    meetings = ["DTSTART:20150105T090000Z\r\nRRULE:FREQ=WEEKLY;BYDAY=MO,WE"] * 100
    holidays = ["DTSTART;VALUE=DATE:19700427\r\nRRULE:FREQ=YEARLY;BYMONTH=4;BYDAY=4MO"] * 100
    data = calendar(*meetings, *holidays)
    assert len(await read_calendar(data, *SPAN, BERLIN)) == 100 * (18 + 1)


def test_the_holidays_of_a_long_event_are_those_of_the_time_that_is_read(tmp_path: Path) -> None:
    path = tmp_path / "days.ics"
    path.write_bytes(calendar("DTSTART;VALUE=DATE:19000101\r\nDTEND;VALUE=DATE:29000101"))
    days = holidays_of(path)()
    assert len(days) in (1201, 1202)


def test_holidays_are_read_again_after_the_file_has_changed(tmp_path: Path) -> None:
    path = tmp_path / "days.ics"
    days = holidays_of(path)
    assert days() == frozenset()
    year = datetime.now(UTC).year
    lines = f"SUMMARY:Christmas\r\nDTSTART;VALUE=DATE:{year}1225\r\nDTEND;VALUE=DATE:{year}1227"
    path.write_bytes(calendar(lines))
    assert days() == {date(year, 12, 25), date(year, 12, 26)}
    path.unlink()
    assert days() == {date(year, 12, 25), date(year, 12, 26)}, "the last days that were read"


def test_holidays_that_take_too_long_are_refused_once_and_not_in_this_process(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "days.ics"
    year = datetime.now(UTC).year
    path.write_bytes(calendar(*[f"DTSTART;VALUE=DATE:{year}1225\r\nSUMMARY:x"] * 8_000))
    days = holidays_of(path, cpu=0.5)
    used = time.process_time()
    assert [days(), days()] == [frozenset(), frozenset()]
    assert time.process_time() - used < 0.5
    assert [record.message for record in caplog.records] == [
        f"holidays of {path}: the calendar takes more than 0.5 s of CPU; give one with fewer events"
    ]


async def test_a_child_process_reads_the_same_events() -> None:
    shifts = calendar(
        "SUMMARY:anna\r\nDTSTART:20260302T090000\r\nDTEND:20260303T090000\r\nRRULE:FREQ=WEEKLY",
        "SUMMARY:Día\r\nDTSTART;VALUE=DATE:20260410\r\nDTEND;VALUE=DATE:20260412",
    )
    events = await read_calendar(shifts, *SPAN, BERLIN)
    assert events == read_events(shifts, *SPAN, BERLIN)
    assert len(events) == 10


async def test_a_calendar_that_takes_too_long_is_refused_without_using_this_process() -> None:
    busy = calendar(*["DTSTART:20260101T000000Z\r\nSUMMARY:x"] * 8_000)
    used = time.process_time()
    with pytest.raises(UsageError, match=r"takes more than 0\.5 s of CPU"):
        await read_calendar(busy, *SPAN, BERLIN, cpu=0.5)
    assert time.process_time() - used < 0.5
    with pytest.raises(UsageError, match="not a calendar"):
        await read_calendar(b"x", *SPAN, BERLIN)
    frequent = calendar("DTSTART:20260302T090000Z\r\nRRULE:FREQ=SECONDLY")
    with pytest.raises(UsageError, match="more often than daily"):
        await read_calendar(frequent, *SPAN, BERLIN)
