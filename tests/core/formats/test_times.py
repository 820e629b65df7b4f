"""Times and durations as text."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from draftsman.formats import times
from tests.support.cases import cases

NOW = datetime(2030, 6, 1, 12, tzinfo=UTC)


@cases(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.4, "0.4 s"),
        (0.97, "1 s"),
        (42, "42 s"),
        (90, "90 s"),
        (99.6, "2 min"),
        (600, "10 min"),
        (5400, "1.5 h"),
        (7200, "2 h"),
        (9.96 * 3600, "10 h"),
        (3600 * 12, "12 h"),
        (86_400 * 4, "4 d"),
    ],
)
def test_a_duration_has_two_digits(seconds: float, text: str) -> None:
    assert times.span(seconds) == text


def test_elapsed_and_remaining_times_are_displayed() -> None:
    assert times.ago(NOW - timedelta(minutes=12), NOW) == "12 min ago"
    assert times.ago(NOW + timedelta(seconds=5), NOW) == "now"
    assert times.until(NOW + timedelta(hours=2), NOW) == "in 2 h"
    assert times.until(NOW - timedelta(seconds=1), NOW) == "due"
    assert times.clock(NOW, NOW) == NOW.astimezone().strftime("%H:%M:%S")
    assert times.clock(NOW - timedelta(days=40), NOW).startswith("2030-04-22")
    assert times.clock(NOW - timedelta(days=40), NOW, zone=UTC) == "2030-04-22 12:00:00"
    assert times.clock(NOW - timedelta(days=40), NOW, zone=UTC, narrow=True) == "04-22 12:00"


@given(st.floats(0, 999 * 86_400))
def test_a_duration_fits_into_a_narrow_column(seconds: float) -> None:
    assert len(times.span(seconds)) <= 6


def test_a_time_names_its_zone() -> None:
    assert times.format_time(NOW) == "2030-06-01 12:00 UTC"
    assert times.format_time(NOW.astimezone(ZoneInfo("Europe/Berlin")), seconds=True) == (
        "2030-06-01 14:00:00 CEST"
    )
    assert times.spelled_time(NOW) == "1 Jun 2030, 12:00 UTC"
    assert times.in_zone(NOW, "Europe/Berlin") == "Sat 2030-06-01 14:00 +0200"
