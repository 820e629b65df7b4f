"""Parsing and formatting of times and durations."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftsman.errors import UsageError
from draftsman_tui.terminal import times
from tests.support.cases import cases

NOW = datetime(2030, 6, 1, 12, tzinfo=UTC)


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
    assert times.parse_duration(text) == seconds


@cases("text", ["", "h", "5x", "-5m", "0s", "1h-2m", "367d", "1e9", "٣h", "5 m x"])
def test_an_invalid_duration_is_refused_with_examples(text: str) -> None:
    with pytest.raises(UsageError, match=r"90s|1s to 366d"):
        times.parse_duration(text)


@given(st.text(max_size=20))
def test_no_text_breaks_the_time_parsers(text: str) -> None:
    for read in (times.parse_duration, times.parse_instant):
        with contextlib.suppress(UsageError):
            read(text)


def test_a_time_without_an_offset_is_local() -> None:
    assert times.parse_instant("2030-12-31T18:00+02:00") == datetime(2030, 12, 31, 16, tzinfo=UTC)
    assert times.parse_instant("2030-12-31T18:00Z") == datetime(2030, 12, 31, 18, tzinfo=UTC)
    local = datetime(2030, 12, 31, 18).astimezone()
    assert times.parse_instant(" 2030-12-31T18:00 ") == local


@cases("text", ["soon", "0001-01-01", "9999-12-31T23:59-12:00", "2030-13-01"])
def test_an_invalid_time_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="2030-12-31T18:00"):
        times.parse_instant(text)


@cases(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.4, "0.4 s"),
        (42, "42 s"),
        (89.6, "1 min"),
        (600, "10 min"),
        (5400, "1.5 h"),
        (3600 * 12, "12 h"),
        (86_400 * 4, "4 d"),
    ],
)
def test_a_duration_is_displayed_shortly(seconds: float, text: str) -> None:
    assert times.span(seconds) == text


def test_elapsed_and_remaining_times_are_displayed() -> None:
    assert times.ago(NOW - timedelta(minutes=12), NOW) == "12 min ago"
    assert times.ago(NOW + timedelta(seconds=5), NOW) == "now"
    assert times.until(NOW + timedelta(hours=2), NOW) == "in 2.0 h"
    assert times.until(NOW - timedelta(seconds=1), NOW) == "due"
    assert times.clock(NOW, NOW) == NOW.astimezone().strftime("%H:%M:%S")
    assert times.clock(NOW - timedelta(days=40), NOW).startswith("2030-04-22")
