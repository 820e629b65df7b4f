"""Times and durations as text."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftsman.durations import parse_instant
from draftsman.formats import times
from draftsman.formats.shown_zone import SHOWN_ZONE
from tests.support.cases import cases

NOW = datetime(2030, 6, 1, 12, tzinfo=UTC)


@pytest.fixture
def berlin() -> Iterator[None]:
    """Show times in the zone of a terminal in Berlin."""
    token = SHOWN_ZONE.set(ZoneInfo("Europe/Berlin"))
    yield
    SHOWN_ZONE.reset(token)


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
        (58.5, "59 s"),
        (59.5, "60 s"),
        (59.5 * 60, "60 min"),
        (23.5 * 3600, "24 h"),
        (2.5 * 86_400, "3 d"),
        (6.5 * 86_400, "7 d"),
    ],
)
def test_a_duration_has_two_digits(seconds: float, text: str) -> None:
    assert times.span(seconds) == text


def test_elapsed_and_remaining_times_are_displayed() -> None:
    assert times.ago(NOW - timedelta(minutes=12), NOW) == "12 min ago"
    assert times.ago(NOW + timedelta(seconds=5), NOW) == "now"
    assert times.until(NOW + timedelta(hours=2), NOW) == "in 2 h"
    assert times.until(NOW - timedelta(seconds=1), NOW) == "due"
    assert times.clock(NOW, NOW) == "12:00:00"
    assert times.clock(NOW - timedelta(days=40), NOW).startswith("2030-04-22")
    assert times.clock(NOW - timedelta(days=40), NOW, zone=UTC) == "2030-04-22 12:00:00"
    assert times.clock(NOW - timedelta(days=40), NOW, zone=UTC, narrow=True) == "04-22 12:00"


@given(st.floats(0, 999 * 86_400))
def test_a_duration_fits_into_a_narrow_column(seconds: float) -> None:
    assert len(times.span(seconds)) <= 6


@given(st.floats(0, 30 * 86_400), st.floats(0, 86_400))
def test_a_longer_duration_is_never_shown_as_shorter(seconds: float, more: float) -> None:
    def shown(duration: float) -> float:
        number, unit = times.span(duration).split()
        return float(number) * {"s": 1, "min": 60, "h": 3600, "d": 86_400}[unit]

    assert shown(seconds) <= shown(seconds + more)


def test_a_time_names_the_zone_in_which_it_is_shown(berlin: None) -> None:
    assert times.format_time(NOW, seconds=True) == "2030-06-01 14:00:00 CEST"
    assert times.spelled_time(NOW) == "1 Jun 2030, 14:00 CEST"
    assert times.clock_with_zone(NOW, NOW) == "14:00:00 CEST"
    assert times.clock(NOW, NOW) == "14:00:00"
    assert parse_instant("2030-06-01 14:00") == NOW
    assert parse_instant("2030-06-01 14:00Z") == NOW + timedelta(hours=2)


def test_a_service_shows_times_in_utc() -> None:
    assert times.format_time(NOW.astimezone(ZoneInfo("Europe/Berlin"))) == "2030-06-01 12:00 UTC"
    assert times.spelled_time(NOW) == "1 Jun 2030, 12:00 UTC"
    assert times.clock_with_zone(NOW, NOW) == "12:00:00 UTC"
    assert parse_instant("2030-06-01 12:00") == NOW
    assert times.in_zone(NOW, "Europe/Berlin") == "Sat 2030-06-01 14:00 +0200"
