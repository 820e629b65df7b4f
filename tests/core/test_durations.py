"""Parsing of times and durations."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftsman.durations import NoUnit, parse_duration, parse_instant, parse_since
from draftsman.errors import UsageError
from draftsman.formats.times import span
from tests.support.cases import cases


@cases(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("10m", 600),
        ("2h", 7200),
        ("1d", 86_400),
        ("1w", 604_800),
        ("1h30m", 5400),
        ("1.5 h", 5400),
        (" 2H ", 7200),
        ("0.2s", 0.2),
        ("3 min", 180),
        ("1 hour 30min", 5400),
        ("2 Days", 172_800),
    ],
)
def test_a_duration_is_parsed(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@cases("text", ["45", " 2 ", "0", "1.5"])
def test_a_number_without_a_unit_is_refused(text: str) -> None:
    number = text.strip()
    for read in (parse_duration, parse_since):
        with pytest.raises(NoUnit, match=f"has no unit; use {number}s, {number}m, {number}h"):
            read(text)


@pytest.mark.parametrize("seconds", [0.3, 42, 720, 9000, 7200, 345_600])
def test_what_columns_print_is_a_duration(seconds: float) -> None:
    assert parse_duration(span(seconds)) == seconds
    assert parse_since(f"{span(seconds)} ago") == seconds


@cases(
    "text",
    ["", "h", "1minh", "2 monthss", "5x", "-5m", "0s", "1h-2m", "367d", "1e9", "٣h", "5 m x"],
)
def test_an_invalid_duration_is_refused_with_examples(text: str) -> None:
    with pytest.raises(UsageError, match=r"90s|1s to 366d"):
        parse_duration(text)


@given(st.text(max_size=20))
def test_no_text_breaks_the_time_parsers(text: str) -> None:
    for read in (parse_duration, parse_instant, parse_since):
        with contextlib.suppress(UsageError):
            read(text)


def test_a_time_without_an_offset_is_local() -> None:
    assert parse_instant("2030-12-31T18:00+02:00") == datetime(2030, 12, 31, 16, tzinfo=UTC)
    assert parse_instant("2030-12-31T18:00Z") == datetime(2030, 12, 31, 18, tzinfo=UTC)
    local = datetime(2030, 12, 31, 18).astimezone()
    assert parse_instant(" 2030-12-31T18:00 ") == local


def _local(*parts: int) -> datetime:
    return datetime.fromisoformat("{:04}-{:02}-{:02}T{:02}:{:02}".format(*parts, 0, 0)).astimezone()


NOW = _local(2026, 11, 30, 12, 30)


@cases(
    ("text", "local"),
    [
        ("2026-11-01", _local(2026, 11, 1)),
        ("2026-11-01 9:00", _local(2026, 11, 1, 9)),
        ("Yesterday 9:00", _local(2026, 11, 29, 9)),
        ("yesterday", _local(2026, 11, 29)),
        ("today 09:05", _local(2026, 11, 30, 9, 5)),
        (" 9:05 ", _local(2026, 11, 30, 9, 5)),
        ("tomorrow 23:59", _local(2026, 12, 1, 23, 59)),
        ("now", _local(2026, 11, 30, 12, 30)),
        ("monday", _local(2026, 12, 7)),
        ("Mon 12:31", _local(2026, 11, 30, 12, 31)),
        ("tuesday 9:00", _local(2026, 12, 1, 9)),
        ("sun", _local(2026, 12, 6)),
    ],
)
def test_days_and_times_of_day_are_local(text: str, local: datetime) -> None:
    assert parse_instant(text, NOW) == local


@cases(
    ("text", "seconds"),
    [
        ("2h", 7200),
        ("-1h", 3600),
        ("2 h ago", 7200),
        ("now", 0.001),
        ("monday", 45_000),
        ("mon 12:31", 604_740),
        ("sunday 12:30", 86_400),
        ("12:00", 1800),
        ("yesterday 12:30", 86_400),
        ("2026-11-30", 45_000),
    ],
)
def test_a_past_time_is_a_duration_or_a_time(text: str, seconds: float) -> None:
    assert parse_since(text, NOW) == seconds


@cases(
    ("text", "message"),
    [
        ("yesteday", "examples: 2h, 1d, 2026-11-30, 9:00"),
        ("25:00", "examples: 2h"),
        ("2026-02-30", "examples: 2h"),
        ("tomorrow", "is in the future"),
        ("2020-01-01", "more than 366 days ago"),
        ("400d", "out of range"),
    ],
)
def test_another_text_is_no_past_time(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_since(text, NOW)


@cases("text", ["soon", "0001-01-01", "9999-12-31T23:59-12:00", "2030-13-01"])
def test_an_invalid_time_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="2030-12-31T18:00"):
        parse_instant(text)
