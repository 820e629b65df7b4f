"""Working hours, holidays and quiet hours of a person."""

from __future__ import annotations

from datetime import date, datetime
from zoneinfo import ZoneInfo

import pytest

from draftsman.people.hours import Holidays, PersonHours, parse, parse_working_hours
from tests.support.cases import cases

BERLIN = ZoneInfo("Europe/Berlin")


def local(day: int, hour: int, minute: int = 0, month: int = 12) -> datetime:
    return datetime(2026, month, day, hour, minute, tzinfo=BERLIN)


def hours(text: str, quiet: str | None = None, days: tuple[int, ...] = ()) -> PersonHours:
    holidays = Holidays("berlin", frozenset(date(2026, 12, day) for day in days))
    shifts = parse_working_hours(text) if text else ()
    return PersonHours(parse(quiet, "Europe/Berlin"), shifts, holidays, BERLIN)


@cases(
    ("now", "free"),
    [
        (local(7, 12), local(7, 12)),  # Monday
        (local(7, 8), local(7, 9)),
        (local(7, 17), local(8, 9)),
        (local(11, 17), local(14, 9)),  # Friday to Monday
        (local(12, 11), local(14, 9)),
    ],
)
def test_a_person_is_free_in_working_hours(now: datetime, free: datetime) -> None:
    assert hours("Mon-Fri 09:00-17:00").over(now) == free


def test_a_holiday_and_quiet_hours_have_no_working_hours() -> None:
    office = hours("Mon-Fri 09:00-17:00", "16:00-10:00", (24, 25))
    assert office.over(local(23, 16)) == local(28, 10), "after the holidays and the weekend"
    assert hours("", None, (24,)).over(local(24, 0)) == local(25, 0)
    assert hours("", None, (24,)).over(local(23, 23)) == local(23, 23)


def test_a_shift_may_end_on_the_next_day() -> None:
    night = hours("Fri-Sat 22:00-06:00")
    assert night.over(local(12, 5)) == local(12, 5), "the shift of Friday"
    assert night.over(local(12, 6)) == local(12, 22)
    assert night.over(local(13, 7)) == local(18, 22)
    assert hours("Mon 00:00-24:00").over(local(7, 23, 59)) == local(7, 23, 59)


def test_hours_are_of_local_time_when_clocks_change() -> None:
    office = hours("Mon-Sun 09:00-17:00")
    assert office.over(local(29, 3, month=3)) == local(29, 9, month=3)
    assert office.over(local(25, 3, month=10)) == local(25, 9, month=10)


def test_a_person_who_never_works_has_a_far_time() -> None:
    never = PersonHours(parse("08:00-18:00", "Europe/Berlin"), (), None, BERLIN)
    busy = PersonHours(never.quiet, parse_working_hours("Mon 09:00-17:00"), None, BERLIN)
    assert busy.over(local(7, 9)) > local(31, 0)


@cases("text", ["", "09:00-17:00", "Mon-Fri", "Mon 9-17", "Mon 09:00-09:00", "Foo 09:00-10:00"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"working hours|days and hours"):
        parse_working_hours(text)
