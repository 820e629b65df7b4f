"""Quiet hours in local time: over midnight, and where clocks are set forward or back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import example, given
from hypothesis import strategies as st

from draftsman.people.hours import QuietHours, next_allowed, parse
from tests.support.cases import cases

MINUTE = timedelta(minutes=1)
minutes = st.integers(0, 1439).map(lambda at: f"{at // 60:02}:{at % 60:02}")
hours = st.tuples(minutes, minutes).filter(lambda two: two[0] != two[1]).map("-".join)
instants = st.integers(788_918_400, 2_114_380_800).map(lambda at: datetime.fromtimestamp(at, UTC))
changes = st.sampled_from(
    [
        ("Europe/Berlin", datetime(2026, 3, 29, 1, tzinfo=UTC)),
        ("Europe/Berlin", datetime(2026, 10, 25, 1, tzinfo=UTC)),
        ("America/Havana", datetime(2026, 11, 1, 5, tzinfo=UTC)),
        ("Australia/Lord_Howe", datetime(2026, 4, 4, 15, tzinfo=UTC)),
        ("Pacific/Apia", datetime(2011, 12, 30, 10, tzinfo=UTC)),
        ("America/Nuuk", datetime(2026, 3, 29, 1, tzinfo=UTC)),
    ]
)
"""Instants at which the clocks of a zone jump, in one case by a whole day."""
near = st.builds(
    lambda change, off: (change[0], change[1] + off * MINUTE), changes, st.integers(-2000, 2000)
)
anywhere = st.tuples(st.timezone_keys(allow_prefix=False), instants)


def berlin(hours: str) -> QuietHours:
    parsed = parse(hours, "Europe/Berlin")
    assert parsed is not None
    return parsed


def is_quiet(quiet: QuietHours, at: datetime) -> bool:
    """Return whether the local time is within the quiet hours."""
    local_time = at.astimezone(quiet.zone).time()
    if quiet.start < quiet.end:
        return quiet.start <= local_time < quiet.end
    return local_time >= quiet.start or local_time < quiet.end


@given(st.one_of(anywhere, near), hours)
@example(("America/Havana", datetime(2026, 11, 1, 4, 59, tzinfo=UTC)), "01:00-00:00")
def test_quiet_hours_end_at_a_time_outside_them(where: tuple[str, datetime], text: str) -> None:
    (zone, now), quiet = where, parse(text, where[0])
    assert quiet is not None
    over = quiet.over(now)
    assert not is_quiet(quiet, over), f"{over.astimezone(ZoneInfo(zone))} is quiet"
    assert over == now or is_quiet(quiet, now) or _is_repeated_hour(quiet, now, over)
    assert over == now or quiet.over(over - timedelta(seconds=1)) == over, "not the first"
    assert now <= over <= now + timedelta(days=3)


def _is_repeated_hour(quiet: QuietHours, now: datetime, over: datetime) -> bool:
    """Return whether the clocks are set back between two instants, to a quiet time or their end."""
    if over.astimezone(quiet.zone).fold:
        return True
    steps = int((over - now) / MINUTE) + 1
    return any(is_quiet(quiet, now + step * MINUTE) for step in range(steps))


@given(st.one_of(anywhere, near), hours)
def test_no_time_within_quiet_hours_is_allowed(where: tuple[str, datetime], text: str) -> None:
    (_, now), quiet = where, parse(text, where[0])
    assert quiet is not None
    over = quiet.over(now)
    for part in range(1, 20):
        assert quiet.over(now + (over - now) * part / 20) == over


@cases(
    ("hours", "now", "over"),
    [
        ("22:00-07:00", "2026-01-10T20:59Z", None),
        ("22:00-07:00", "2026-01-10T21:00Z", "2026-01-11T06:00Z"),
        ("22:00-07:00", "2026-01-11T05:59Z", "2026-01-11T06:00Z"),
        ("22:00-07:00", "2026-01-11T06:00Z", None),
        ("12:00-13:30", "2026-07-11T10:30Z", "2026-07-11T11:30Z"),
        ("22:00-07:00", "2026-03-28T22:00Z", "2026-03-29T05:00Z"),  # summer begins
        ("22:00-07:00", "2026-10-24T22:00Z", "2026-10-25T06:00Z"),  # summer ends
        ("22:00-02:30", "2026-03-28T23:00Z", "2026-03-29T01:00Z"),  # 2:30 is never shown
        ("02:15-05:00", "2026-03-29T01:00Z", "2026-03-29T03:00Z"),  # nor is 2:15
        ("22:00-02:30", "2026-10-24T23:00Z", "2026-10-25T01:30Z"),  # 2:30 is shown twice
        ("02:15-05:00", "2026-10-25T00:15Z", "2026-10-25T04:00Z"),  # so is 2:15
        ("02:15-05:00", "2026-10-25T00:14Z", None),
    ],
)
def test_in_berlin(hours: str, now: str, over: str | None) -> None:
    at = datetime.fromisoformat(now)
    assert berlin(hours).over(at) == datetime.fromisoformat(over or now)


def test_the_earliest_end_of_quiet_hours_is_the_next_allowed_time() -> None:
    now = datetime(2026, 1, 10, 23, tzinfo=UTC)  # 0:00 in Berlin, 8:00 in Tokyo
    west = parse("22:00-07:00", "Europe/Berlin")
    east = parse("22:00-07:00", "Asia/Tokyo")
    assert next_allowed(now, [west]) == datetime(2026, 1, 11, 6, tzinfo=UTC)
    assert next_allowed(now, [west, east]) == now
    assert next_allowed(now, [west, parse("20:00-09:00", "Asia/Tokyo")]) == now + timedelta(hours=1)
    assert next_allowed(now, [west, None]) == now
    assert next_allowed(now, []) == now


def test_no_quiet_hours_parse_to_none() -> None:
    assert parse(None, "UTC") is None
    assert parse("none", "UTC") is None
