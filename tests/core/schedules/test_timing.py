"""Rules of schedules, and the clock changes of time zones compared with an oracle."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

import pytest

from draftsman.errors import UsageError
from draftsman.schedules.schedule import Timing, parse_rule
from tests.support.cases import cases
from tests.support.cron_oracle import compare, transitions

ANCHOR = datetime(2026, 1, 1, 12, 0, 30, tzinfo=UTC)


def _next(rule: str, zone: str, after: str, count: int = 1) -> list[str]:
    timing = Timing(parse_rule(rule, zone), zone, ANCHOR)
    times = islice(timing.after(datetime.fromisoformat(after)), count)
    return [at.astimezone(ZoneInfo(zone)).strftime("%m-%d %H:%M%z") for at in times]


@cases(
    ("rule", "after", "expected"),
    [
        ("30 2 * * *", "2026-03-29T00:00Z", ["03-29 03:00+0200", "03-30 02:30+0200"]),
        ("*/30 2 * * *", "2026-03-29T00:00Z", ["03-30 02:00+0200", "03-30 02:30+0200"]),
        ("0,30 2 * * *", "2026-03-29T00:00Z", ["03-29 03:00+0200", "03-30 02:00+0200"]),
        ("30 2 * * *", "2026-10-25T00:00Z", ["10-25 02:30+0200", "10-26 02:30+0100"]),
        ("30 2 * * *", "2026-10-25T01:00Z", ["10-26 02:30+0100", "10-27 02:30+0100"]),
        ("*/30 2 * * *", "2026-10-25T00:15Z", ["10-25 02:30+0200", "10-25 02:00+0100"]),
        ("0 9 * * mon-fri", "2026-03-27T12:00Z", ["03-30 09:00+0200", "03-31 09:00+0200"]),
        ("0 0 31 * *", "2026-01-31T12:00Z", ["03-31 00:00+0200", "05-31 00:00+0200"]),
        ("@daily", "2026-01-31T12:00Z", ["02-01 00:00+0100", "02-02 00:00+0100"]),
    ],
)
def test_cron_in_berlin(rule: str, after: str, expected: list[str]) -> None:
    assert _next(rule, "Europe/Berlin", after, 2) == expected


def test_an_interval_counts_from_its_anchor() -> None:
    assert _next("@every 1h30m", "UTC", "2026-01-01T00:00Z", 2) == [
        "01-01 13:30+0000",
        "01-01 15:00+0000",
    ]
    assert _next("@every 90m", "UTC", "2026-03-02T00:00Z") == ["03-02 00:00+0000"]
    timing = Timing("@every 90m", "UTC", ANCHOR)
    assert timing.next(ANCHOR + timedelta(minutes=90)) == ANCHOR + timedelta(minutes=180)


def test_a_single_time_is_due_once() -> None:
    rule = parse_rule("@at 2026-05-01T20:00:00.5+02:00", "UTC")
    assert rule == "@at 2026-05-01T18:00:00Z"
    assert _next(rule, "UTC", "2026-05-01T17:59Z", 3) == ["05-01 18:00+0000"]
    assert _next(rule, "UTC", "2026-05-01T18:00Z") == []


@cases(
    ("rule", "problem"),
    [
        ("daily", "has 1 field, not 5"),
        ("0 9 * *", "has 4 fields, not 5"),
        ("0 0 9 * * *", "has 6 fields, not 5"),
        ("60 9 * * *", "invalid minute"),
        ("0 9 * * mon-funday", "invalid day-of-week"),
        ("0 0 30 2 *", "invalid day-of-month"),
        ("@sometimes", "unknown rule '@sometimes'"),
        ("@every", "invalid interval; examples"),
        ("@every 90", "invalid interval"),
        ("@every 59s", "at least 60s"),
        ("@every 99999999999999999999w", "at most 366d"),
        ("@at noon", "invalid time"),
        ("@at 2030-01-01T00:00", "invalid time"),
    ],
)
def test_an_invalid_rule_is_refused_in_one_line(rule: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem) as refused:
        parse_rule(rule, "UTC")
    assert "\n" not in str(refused.value)


@cases("zone", ["Europa/Berlin", "", "../etc/passwd", "x" * 300, "\0"])
def test_an_unknown_zone_is_refused(zone: str) -> None:
    with pytest.raises(UsageError, match="unknown time zone"):
        parse_rule("0 9 * * *", zone)


@cases(
    "zone",
    [
        "Europe/Berlin",  # one hour, at 2:00
        "America/Havana",  # a day without midnight
        "Australia/Lord_Howe",  # half an hour
        "Antarctica/Troll",  # two hours
        "Africa/Casablanca",  # negative in Ramadan
        "Asia/Kathmandu",  # no change
    ],
)
def test_transitions_agree_with_the_oracle(zone: str) -> None:
    tried = 0
    for at in islice(transitions(ZoneInfo(zone), 2026, 2028), 2):
        tried += compare(zone, at)
    assert tried or zone == "Asia/Kathmandu"
