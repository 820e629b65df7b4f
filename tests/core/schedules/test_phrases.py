"""Rules in English: accepted and refused phrases, and text after them."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from draftsman.errors import UsageError
from draftsman.schedules.phrases import EXAMPLES, FIRST_WORDS, read_phrase, whole_phrase
from draftsman.schedules.schedule import Timing, parse_rule
from tests.support.cases import cases

NOW = datetime(2026, 11, 23, 18, 0, tzinfo=UTC)
"""A Monday, 19:00 in Berlin."""
BERLIN = "Europe/Berlin"
NAMES = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


@cases(
    ("text", "rule"),
    [
        ("every weekday at 9", "0 9 * * mon-fri"),
        ("Every  Day at 9:05", "5 9 * * *"),
        ("every monday at 9:30", "30 9 * * mon"),
        ("every mon,thu at 14:00", "0 14 * * mon,thu"),
        ("every monday, wed and friday at 9 pm", "0 21 * * mon,wed,fri"),
        ("every fri-mon at noon", "0 12 * * mon,fri,sat,sun"),
        ("every monday to friday at 12am", "0 0 * * mon,tue,wed,thu,fri"),
        ("every sun and sat at 12:30pm", "30 12 * * sat,sun"),
        ("every month on the 1st at 0:00", "0 0 1 * *"),
        ("every month on the 22nd at 23:59", "59 23 22 * *"),
        ("every month on the 13th at 8", "0 8 13 * *"),
        ("every month on the last day at 9", "0 9 L * *"),
        ("every 90m", "@every 90m"),
        ("every 1h30m", "@every 90m"),
        ("every 90 minutes", "@every 90m"),
        ("every 2 hours", "@every 120m"),
        ("every 1 h", "@every 60m"),
        ("every 1h 30m", "@every 90m"),
        ("every 1 hr 30 mins", "@every 90m"),
        ("every hour", "@every 60m"),
        ("every minute", "@every 1m"),
        ("tomorrow at 14:00", "@at 2026-11-24T13:00:00Z"),
        ("today at 7:30pm", "@at 2026-11-23T18:30:00Z"),
        ("on friday at 8", "@at 2026-11-27T07:00:00Z"),
        ("on sunday at 8", "@at 2026-11-29T07:00:00Z"),
        ("on 2027-07-01 at 9", "@at 2027-07-01T07:00:00Z"),
        ("in 90m", "@at 2026-11-23T19:30:00Z"),
        ("in 2 hours", "@at 2026-11-23T20:00:00Z"),
    ],
)
def test_understood(text: str, rule: str) -> None:
    assert whole_phrase(text).rule(BERLIN, NOW) == rule


@cases(
    ("text", "zone", "rule"),
    [
        ("every day at 9 Asia/Tokyo", "Asia/Tokyo", "0 9 * * *"),
        ("every day at 9 in America/New_York", "America/New_York", "0 9 * * *"),
        ("tomorrow at 14:00 utc", "UTC", "@at 2026-11-24T14:00:00Z"),
        ("tomorrow at 14:00 in Asia/Tokyo", "Asia/Tokyo", "@at 2026-11-25T05:00:00Z"),
    ],
)
def test_named_zone_replaces_the_default(text: str, zone: str, rule: str) -> None:
    phrase = whole_phrase(text)
    assert (phrase.zone, phrase.rule(BERLIN, NOW)) == (zone, rule)


@cases(
    ("text", "problem"),
    [
        ("", "a rule begins with every"),
        ("daily at 9", "a rule begins with every"),
        ("every", "expected day, weekday, month"),
        ("every weekend at 9", "not 'weekend'"),
        ("every mondays at 9", "not 'mondays'"),
        ("every day", "expected 'at'"),
        ("every day 9", "expected 'at', as in 'every weekday at 9', not '9'"),
        ("every day at", "expected a time"),
        ("every day at 24:00", "the last is 23:59"),
        ("every day at 9:60", "the last is 23:59"),
        ("every day at 9:5", "expected a time"),
        ("every day at 0900", "expected a time"),
        ("every day at 13pm", "is not a time"),
        ("every day at 0 am", "0 am is not a time"),
        ("every day at midnight", "expected a time"),
        ("every day at 9-17", "expected a time"),
        ("every 2 days", "a day is 24h"),
        ("every 2d", "expected an interval"),
        ("every 90", "expected minutes or hours"),
        ("every 30s", "expected an interval"),
        ("every 0m", "at least 1m and at most 8784h"),
        ("every 8785h", "at least 1m and at most 8784h"),
        ("in 0 minutes", "at least 1m and at most 8784h"),
        ("every month on the 31st at 9", "1st to 28th"),
        ("every month on the 2th at 9", "1st to 28th"),
        ("every month at 9", "expected 'on'"),
        ("every monday to at 9", "expected day"),
        ("every monday, at 9", "expected day"),
        ("today at 9", "2026-11-23 09:00 in Europe/Berlin is past"),
        ("on monday at 20:00", "write today, or 2026-11-30"),
        ("on 2026-02-30 at 9", "there is no 2026-02-30"),
        ("on 2026-01-01 at 9", "is past"),
        ("on tuesdays at 9", "expected a day"),
        ("on 2027-03-28 at 2:30", "does not occur in Europe/Berlin"),
        ("on 2027-10-31 at 2:30", "occurs twice in Europe/Berlin"),
        ("on 9999-12-31 at 23:59", "out of range"),
        ("in 2 days", "a day is 24h"),
        ("in my opinion", "not 'my'"),
        ("every day at 9 in Europe/Berln", "did you mean Europe/Berlin"),
        ("every day at 9 Europe/Berln", "did you mean Europe/Berlin"),
        ("every day at 9 in the morning", "unknown time zone 'the'"),
        ("every day at 9 and 17 Look", "'and' is not understood"),
        ("every day at 9 30 Look", "'30' is not understood"),
        ("every day at 9, 10 Look", "expected a time"),
        ("every day at 9 CET Look", "'cet' is not understood"),
        ("every 90m until friday Look", "'until' is not understood"),
        ("every day at 9 except sundays", "'except' is not understood"),
        ("every monday at 9 thursday at 10", "'thursday' is not understood"),
    ],
)
def test_refused_with_examples(text: str, problem: str) -> None:
    with pytest.raises(UsageError) as refused:
        whole_phrase(text).rule("America/St_Johns" if "9999" in text else BERLIN, NOW)
    assert problem in str(refused.value)
    assert str(refused.value).endswith(EXAMPLES)


@cases(
    ("text", "rest"),
    [
        ("every weekday at 9 Update the dependencies", "Update the dependencies"),
        ("every weekday at 9: and then some", "and then some"),
        ("every 90m: 30 tests", "30 tests"),
        ("every day at 9 Europe/Berlin: until it works", "until it works"),
        ("every day at 9 'until it works'", "'until it works'"),
        ("every day at 9 core/draftsman is slow", "core/draftsman is slow"),
        ("in 2 hours look\nat this", "look\nat this"),
        ("every day at 9 PMs get a report", "PMs get a report"),
        ("every day at 9", ""),
    ],
)
def test_text_after_the_rule(text: str, rest: str) -> None:
    assert read_phrase(text)[1] == rest


def test_no_text_may_follow_a_whole_phrase() -> None:
    with pytest.raises(UsageError, match="not understood: 'Look'"):
        whole_phrase("every 90m Look")


VOCABULARY = [
    *sorted(FIRST_WORDS),
    *("day", "weekday", "month", "monday", "mon,thu", "at", "the", "last", "1st", "2", "9", "9:30"),
    *("14:00", "am", "pm", "noon", "90m", "hours", "minutes", "and", "to", "UTC", "Europe/Berlin"),
    *("2027-03-28", ":", ",", "Look"),
]


@given(st.lists(st.sampled_from(VOCABULARY), max_size=9).map(" ".join) | st.text(max_size=40))
def test_any_text_is_understood_or_refused_in_a_line(text: str) -> None:
    try:
        phrase, rest = read_phrase(text)
        rule = phrase.rule(BERLIN, NOW)
    except UsageError as error:
        problem: str | None = str(error)
    else:
        problem = None
    if problem is not None:
        assert len(problem.splitlines()) == 1
        return
    assert rule == parse_rule(rule, BERLIN)
    typed = "".join(text.split())
    read = "".join(phrase.text.split()) + "".join(rest.split())
    assert read in (typed, typed.replace(":", "", 1)) or read == typed.replace(":" + rest, rest)


@given(
    st.sets(st.integers(0, 6), min_size=1),
    st.times().map(lambda at: at.replace(second=0, microsecond=0)),
    st.booleans(),
    st.sampled_from(("UTC", BERLIN, "America/St_Johns", "Australia/Lord_Howe")),
)
def test_days_of_the_week_occur_at_their_times(
    days: set[int], clock: time, half: bool, zone: str
) -> None:
    named = [NAMES[day] for day in sorted(days)]
    listed = " and ".join(filter(None, (", ".join(named[:-1]), named[-1])))
    shown = f"{clock:%I:%M%p}".lower() if half else f"{clock:%H:%M}"
    rule = whole_phrase(f"every {listed} at {shown}").rule(zone, NOW)
    occurrences = list(islice(Timing(rule, zone, NOW).after(NOW), 2 * len(days)))
    walls = [at.astimezone(ZoneInfo(zone)) for at in occurrences]
    assert {wall.weekday() for wall in walls} == days
    assert {(wall.hour, wall.minute) for wall in walls} == {(clock.hour, clock.minute)}
    assert walls[-1] - walls[0] < timedelta(days=14)


@given(
    st.dates(NOW.date() + timedelta(days=1), NOW.date() + timedelta(days=4000)),
    st.times().map(lambda at: at.replace(second=0, microsecond=0)),
    st.sampled_from((BERLIN, "America/St_Johns", "Australia/Lord_Howe", "Africa/Casablanca")),
)
@example(date(2026, 11, 24), time(0, 0), "Australia/Lord_Howe")
def test_a_single_time_is_the_wall_time_or_refused(day: object, clock: time, zone: str) -> None:
    with suppress(UsageError):
        rule = whole_phrase(f"on {day} at {clock:%H:%M}").rule(zone, NOW)
        shown = datetime.fromisoformat(rule.removeprefix("@at ")).astimezone(ZoneInfo(zone))
        assert f"{shown:%Y-%m-%d %H:%M}" == f"{day} {clock:%H:%M}"
        return
    wall = datetime.fromisoformat(f"{day}T{clock}").replace(tzinfo=ZoneInfo(zone))
    assert wall <= NOW or wall.utcoffset() != wall.replace(fold=1).utcoffset()


@given(st.text(st.characters(categories=["L", "N", "P", "S", "Zs"]), min_size=1))
def test_text_is_returned_as_it_was_typed(text: str) -> None:
    assume(text.strip())
    assert read_phrase(f"every weekday at 9: {text}")[1] == text.strip()
