"""On-call schedules: turns, handovers in local time, overrides and titles of events."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from draftsman.attention.oncall import Duty, Rotation, next_duty, on_duty, person_in
from tests.support.cases import cases

BERLIN = ZoneInfo("Europe/Berlin")
START = datetime(2026, 3, 23, 9)  # noqa: DTZ001 - local time: Monday, the week before summer time
TEAM = ("anna", "ben", "carol")
YEAR = timedelta(days=366)


def local(month: int, day: int, hour: int, minute: int = 0) -> datetime:
    return datetime(2026, month, day, hour, minute, tzinfo=BERLIN)


def holder(rotation: Rotation, now: datetime) -> list[str]:
    return [duty.person for duty in on_duty(rotation, now)]


def test_people_take_turns_at_the_same_local_time() -> None:
    rotation = Rotation(TEAM, START, 7, BERLIN)
    assert holder(rotation, local(3, 23, 8, 59)) == []
    assert holder(rotation, local(3, 23, 9)) == ["anna"]
    assert holder(rotation, local(3, 30, 8, 59)) == ["anna"], "in summer time from 29 March on"
    assert holder(rotation, local(3, 30, 9)) == ["ben"]
    assert holder(rotation, local(4, 13, 9)) == ["anna"]
    (duty,) = on_duty(rotation, local(3, 25, 12))
    assert duty.end == datetime(2026, 3, 30, 7, tzinfo=UTC)
    assert next_duty(rotation, local(3, 25, 12), YEAR) == Duty(
        "ben", local(3, 30, 9), local(4, 6, 9)
    )


def test_an_override_replaces_a_part_of_the_turns() -> None:
    override = Duty("carol", local(3, 29, 12), local(3, 30, 12))
    rotation = Rotation(TEAM, START, 7, BERLIN, (override,))
    assert holder(rotation, local(3, 29, 11)) == ["anna"]
    assert holder(rotation, local(3, 29, 12)) == ["carol"]
    assert holder(rotation, local(3, 30, 11, 59)) == ["carol"]
    assert holder(rotation, local(3, 30, 12)) == ["ben"]
    (duty,) = on_duty(rotation, local(3, 25, 12))
    assert duty.end == override.start
    later = next_duty(rotation, local(3, 25, 12), YEAR)
    assert later == override


def test_a_turn_may_last_a_day() -> None:
    rotation = Rotation(("anna", "ben"), START, 1, BERLIN)
    people = [holder(rotation, local(3, 23 + day, 10))[0] for day in range(6)]
    assert people == ["anna", "ben"] * 3


@cases(
    ("title", "person"),
    [
        ("anna", "anna"),
        (" Anna ", "anna"),
        ("On call: ben", "ben"),
        ("anna swaps with ben", None),
        ("Summer party", None),
        ("annabel", None),
    ],
)
def test_an_event_names_one_person(title: str, person: str | None) -> None:
    assert person_in(title, TEAM) == person
