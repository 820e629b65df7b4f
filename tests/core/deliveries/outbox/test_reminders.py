"""Reminders at half and at 90 % of a question's time: each once, three at most, none at night."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from draftsman.database.database import Connection
from draftsman.deliveries.delivery import DeliveryKind
from draftsman.deliveries.documents.plain import render_plain
from draftsman.deliveries.service.message_builder import build_message
from draftsman.deliveries.store import deliveries
from draftsman.deliveries.target import parse
from draftsman.jobs.job import Source
from draftsman.jobs.runs.run import ClaimedJob, LeaderTerm
from draftsman.questions.question import OnExpire
from draftsman.questions.question_spec import QuestionSpec
from draftsman.runtime import Runtime, wire
from draftsman.settings import settings_model
from draftsman_testing.factories import GATE, QUESTION, Factory
from draftsman_testing.outbox import LOG, claim, deliveries_of, kinds_and_statuses, send_all
from draftsman_testing.people import PEOPLE, People
from tests.support.clock import Clock
from tests.support.statements import CHANGE, refused, rows, run

HOUR = 3600.0
LONG = QUESTION.model_copy(update={"expires_in": 100 * HOUR})


async def count(rt: Runtime, job: int) -> int:
    """Return the number of reminders, which equals the counter of the question."""
    reminders = [
        delivery
        for delivery in await deliveries_of(rt, job)
        if delivery.kind is DeliveryKind.REMINDER
    ]
    assert (await rt.questions.get(job, 1)).reminders == len(reminders)
    return len(reminders)


async def test_reminders_are_due_at_half_and_at_90_percent_of_the_time(
    make: Factory, rt: Runtime, clock: Clock
) -> None:
    work = await make.asked(LONG, **LOG)
    counts = []
    for hours in (49, 2, 38, 2, 8):  # 49, 51, 89, 91, 99
        await clock.forward(hours * HOUR)
        await rt.sweeps.run("remind", LeaderTerm())
        counts.append(await count(rt, work.number))
    assert counts == [0, 1, 1, 2, 2]


async def test_a_reminder_follows_its_question_once_for_each_target(
    make: Factory, rt: Runtime, clock: Clock
) -> None:
    work = await make.asked(LONG, notify=("log", "slack:C1"))
    await send_all(rt)
    await clock.forward(51 * HOUR)
    for _ in range(3):
        await rt.sweeps.run("remind", LeaderTerm())
    (item,) = [delivery for delivery in await claim(rt) if delivery.kind is DeliveryKind.REMINDER]
    question = await rt.questions.get(work.number, 1)
    async with rt.db.connection() as conn:
        facts = await deliveries.message_facts(conn, item.seq)
        text = render_plain(build_message(item, facts, question, rt.policy))
    assert text.startswith(f"{work.name}/1 is still waiting for an answer\n")
    assert "Which one?" in text
    channels = [
        delivery.channel
        for delivery in await deliveries_of(rt, work.number)
        if delivery.kind == "reminder"
    ]
    assert sorted(channels) == ["log", "slack"]
    assert question.reminders == 1


async def test_a_late_sweep_reminds_once(make: Factory, rt: Runtime, clock: Clock) -> None:
    work = await make.asked(LONG, **LOG)
    await clock.forward(95 * HOUR)
    assert [await rt.sweeps.run("remind", LeaderTerm()) for _ in range(2)] == [1, 0]
    assert await count(rt, work.number) == 1


@pytest.mark.parametrize("item", [{"never_expires": True}, {"expires_in": 60.0}])
async def test_a_question_that_never_expires_or_is_overdue_gets_no_reminder(
    make: Factory, rt: Runtime, clock: Clock, item: dict[str, Any]
) -> None:
    work = await make.asked(QUESTION.model_copy(update=item), **LOG)
    await clock.forward(1000 * HOUR)
    await rt.sweeps.run("remind", LeaderTerm())
    assert await count(rt, work.number) == 0
    assert await rt.sweeps.run("remind", LeaderTerm()) == 0


async def test_a_closed_question_gets_no_reminder(make: Factory, rt: Runtime, clock: Clock) -> None:
    works = [await make.asked(LONG, **LOG) for _ in range(2)]
    await make.answer(works[0].number, "red")
    await rt.job_control.cancel(works[1].number, make.owner)
    await clock.forward(51 * HOUR)
    assert await rt.sweeps.run("remind", LeaderTerm()) == 0
    assert [await count(rt, work.number) for work in works] == [0, 0]


async def test_a_pending_reminder_is_superseded_when_its_question_closes(
    make: Factory, rt: Runtime, clock: Clock
) -> None:
    work = await make.asked(LONG, **LOG)
    await send_all(rt)
    await clock.forward(51 * HOUR)
    await rt.sweeps.run("remind", LeaderTerm())
    await make.answer(work.number, "red")
    assert ("reminder", "superseded") in await kinds_and_statuses(rt, work.number)


async def test_an_extended_question_gets_at_most_three_reminders(
    make: Factory, rt: Runtime, clock: Clock
) -> None:
    work = await make.asked(LONG, **LOG)
    await clock.forward(51 * HOUR)
    await rt.sweeps.run("remind", LeaderTerm())
    counts = []
    for _ in range(3):
        await rt.questions.extend(work.number, 1, 100 * HOUR, make.owner)
        await rt.sweeps.run("remind", LeaderTerm())
        counts.append(await count(rt, work.number))
        await clock.forward(100 * HOUR)  # over half of its time, with 50 left
        await rt.sweeps.run("remind", LeaderTerm())
        counts.append(await count(rt, work.number))
    assert counts == [1, 2, 2, 3, 3, 3]
    await rt.questions.extend(work.number, 1, None, make.owner)
    assert await rt.sweeps.next_due() is None


async def test_a_question_that_no_longer_expires_gets_no_reminder(
    make: Factory, rt: Runtime, clock: Clock
) -> None:
    work = await make.asked(LONG, **LOG)
    await rt.questions.extend(work.number, 1, None, make.owner)
    await clock.forward(99 * HOUR)
    assert await rt.sweeps.run("remind", LeaderTerm()) == 0
    assert await count(rt, work.number) == 0


async def test_a_reminder_without_a_target_is_skipped(
    make: Factory, rt: Runtime, clock: Clock
) -> None:
    work = await make.asked(LONG)
    await clock.forward(51 * HOUR)
    assert [await rt.sweeps.run("remind", LeaderTerm()) for _ in range(2)] == [1, 0]
    async with rt.db.connection() as conn:
        await deliveries.add_targets(conn, [(work.number, [parse("log")])])
    await clock.forward(40 * HOUR)
    await rt.sweeps.run("remind", LeaderTerm())
    assert await count(rt, work.number) == 1


async def test_a_sweep_of_reminders_is_bounded_and_oldest_first(
    make: Factory, rt: Runtime, clock: Clock
) -> None:
    limited = wire(
        rt.settings.model_copy(
            update={"sweeps": rt.settings.sweeps.model_copy(update={"limit": 2})}
        ),
        rt.db,
        False,
    )
    works = [await make.asked(LONG, **LOG) for _ in range(3)]
    await clock.forward(51 * HOUR)
    assert await limited.reminders.remind(LeaderTerm()) == 2
    assert [await count(rt, work.number) for work in works] == [1, 1, 0]
    assert await limited.sweeps.run("remind", LeaderTerm()) == 1


# Quiet hours. The clock is put to an hour of a day in January.


def _with_quiet_hours(rt: Runtime, **people: dict[str, str]) -> Runtime:
    """Return services for people with these quiet hours; by default 22 to 7 in UTC."""
    data = rt.settings.model_dump(exclude_unset=True)
    data["people"] = {name: PEOPLE[name] | people.get(name, {}) for name in PEOPLE}
    data["questions"] = {"quiet_hours": "22:00-07:00", "timezone": "UTC"}
    return wire(settings_model().model_validate(data), rt.db, False)


async def _set_hour(clock: Clock, rt: Runtime, hour: float) -> None:
    """Move the clock forward to this hour of the day, in UTC."""
    now = await rt.checkpoints.now()
    today = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    await clock.forward(((hour * HOUR) - (now - today).total_seconds()) % (24 * HOUR))


async def _due_at(conn: Connection) -> list[datetime]:
    due = "SELECT remind_at FROM draftsman.question_times WHERE remind_at IS NOT NULL"
    return [at for (at,) in await rows(conn, due)]


async def test_a_reminder_waits_for_the_end_of_quiet_hours(
    make: Factory, rt: Runtime, clock: Clock, conn: Connection
) -> None:
    night = _with_quiet_hours(rt)
    await _set_hour(clock, rt, 18)
    work = await make.asked(QUESTION.model_copy(update={"expires_in": 10 * HOUR}), **LOG)
    long = await make.asked(QUESTION.model_copy(update={"expires_in": 24 * HOUR}), **LOG)
    await clock.forward(12.5 * HOUR)
    assert await night.sweeps.run("remind", LeaderTerm()) == 2
    assert await count(rt, work.number) == 0, "it expires before the end of quiet hours"
    assert await count(rt, long.number) == 0
    assert await night.sweeps.run("remind", LeaderTerm()) == 0, (
        "it is postponed, not evaluated again"
    )
    (morning,) = await _due_at(conn)
    assert (morning.astimezone(UTC).hour, morning.minute) == (7, 0)
    await clock.forward(0.5 * HOUR)
    assert await night.sweeps.run("remind", LeaderTerm()) == 1
    assert await count(rt, long.number) == 1
    (at,) = await _due_at(conn)
    remaining = at - (await rt.checkpoints.now())
    assert 8.4 * HOUR < remaining.total_seconds() <= 8.6 * HOUR, "the reminder at 90 % is not due"


async def test_a_delayed_reminder_is_superseded_by_an_answer(
    make: Factory, rt: Runtime, clock: Clock
) -> None:
    night = _with_quiet_hours(rt)
    await _set_hour(clock, rt, 18)
    work = await make.asked(QUESTION.model_copy(update={"expires_in": 24 * HOUR}), **LOG)
    await clock.forward(12.5 * HOUR)
    await night.sweeps.run("remind", LeaderTerm())
    await make.answer(work.number, "red")
    await clock.forward(2 * HOUR)
    assert await night.sweeps.run("remind", LeaderTerm()) == 0
    assert await count(rt, work.number) == 0


TOKYO = {"timezone": "Asia/Tokyo"}
"""A time zone in which it is day from 22:00 to 13:00 UTC."""
CASES = [
    (GATE, {}, 3, 0),
    (GATE, {"carol": TOKYO}, 3, 1),  # the first responder has no quiet hours now
    (GATE, {"carol": {"quiet_hours": "none"}}, 3, 1),
    (GATE, {"ben": TOKYO}, 3, 0),  # he may not decide it
    (GATE, {"carol": TOKYO, "dave": TOKYO}, 14, 0),
    (GATE, {"carol": TOKYO}, 14, 1),
    (QUESTION, {"ben": TOKYO}, 3, 1),
    (QUESTION, {"ben": TOKYO}, 14, 1),  # the requester has no quiet hours now
    (QUESTION, {"ben": TOKYO, "anna": TOKYO}, 14, 0),
    (QUESTION, {"carol": TOKYO}, 3, 0),
]


@pytest.mark.parametrize(("item", "where", "hour", "expected"), CASES)
async def test_quiet_hours_of_the_possible_responders_count(
    make: Factory,
    rt: Runtime,
    people: People,
    clock: Clock,
    item: QuestionSpec,
    where: dict[str, dict[str, str]],
    hour: int,
    expected: int,
) -> None:
    night = _with_quiet_hours(rt, **where)
    await _set_hour(clock, rt, hour)
    await clock.forward(24 * HOUR - 6 * HOUR)
    item = item.model_copy(update={"expires_in": 11.5 * HOUR})
    work: ClaimedJob = await make.asked(item, actor=people.on(Source.CLI, "anna"), **LOG)
    await clock.forward(6 * HOUR)
    assert await night.sweeps.run("remind", LeaderTerm()) == 1
    assert await count(rt, work.number) == expected


async def test_a_question_is_escalated_once_by_any_writer(make: Factory, conn: Connection) -> None:
    await make.asked(
        QUESTION.model_copy(update={"on_expire": OnExpire.ESCALATE, "escalate_to": "leads"})
    )
    mark = "UPDATE draftsman.question_times SET escalated_at = draftsman.now() + %s::interval"
    await run(conn, mark, ("1 s",))
    async with refused(CHANGE, "a question is escalated once"):
        await run(conn, mark, ("2 s",))
    async with refused(CHANGE, "questions are never deleted"):
        await run(conn, "DELETE FROM draftsman.question_times")
