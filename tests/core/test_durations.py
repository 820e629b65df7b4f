"""Parsing of times and durations."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftsman.durations import parse_duration, parse_instant
from draftsman.errors import UsageError
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
        ("45", 45),
        ("0.2s", 0.2),
    ],
)
def test_a_duration_is_parsed(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@cases("text", ["", "h", "5x", "-5m", "0s", "1h-2m", "367d", "1e9", "٣h", "5 m x"])
def test_an_invalid_duration_is_refused_with_examples(text: str) -> None:
    with pytest.raises(UsageError, match=r"90s|1s to 366d"):
        parse_duration(text)


@given(st.text(max_size=20))
def test_no_text_breaks_the_time_parsers(text: str) -> None:
    for read in (parse_duration, parse_instant):
        with contextlib.suppress(UsageError):
            read(text)


def test_a_time_without_an_offset_is_local() -> None:
    assert parse_instant("2030-12-31T18:00+02:00") == datetime(2030, 12, 31, 16, tzinfo=UTC)
    assert parse_instant("2030-12-31T18:00Z") == datetime(2030, 12, 31, 18, tzinfo=UTC)
    local = datetime(2030, 12, 31, 18).astimezone()
    assert parse_instant(" 2030-12-31T18:00 ") == local


@cases("text", ["soon", "0001-01-01", "9999-12-31T23:59-12:00", "2030-13-01"])
def test_an_invalid_time_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="2030-12-31T18:00"):
        parse_instant(text)
