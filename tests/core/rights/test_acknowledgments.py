"""Acknowledgments and snoozes: the right to delay reminders, and their delivery afterwards."""

from __future__ import annotations

import json
from datetime import datetime

import pytest

from draftsman.attention import store as attention
from draftsman.attention.attention import ReminderDelay
from draftsman.attention.ladder import LadderStep
from draftsman.database.database import Connection
from draftsman.deliveries.delivery import DeliveryKind
from draftsman.deliveries.target import Target
from draftsman.errors import NotPermitted, QuestionClosed, Refused, UsageError
from draftsman.jobs.job import Source
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman_testing.factories import GATE, QUESTION, Factory
from draftsman_testing.outbox import deliveries_of
from tests.core.rights.conftest import As
from tests.support.clock import Clock
from tests.support.statements import rows

ANY_TARGET = Target("slack", "C0ANY")
DAY = {"expires_in": 86_400.0}


async def reminders_of(rt: Runtime, number: int) -> list[str]:
    return [d.target for d in await deliveries_of(rt, number) if d.kind is DeliveryKind.REMINDER]


async def test_only_a_person_who_may_answer_delays_reminders(
    as_role: As, known: Runtime, make: Factory, clock: Clock
) -> None:
    number = (await make.asked(GATE)).number
    carol, dave, ben, worker = [await as_role(n) for n in ("carol", "dave", "ben", "worker")]

    async def ack(rt: Runtime, seconds: float = 3600) -> ReminderDelay:
        return await rt.acknowledgments.acknowledge(number, 1, await rt.actor(), seconds)

    held = await ack(carol)
    assert (held.person, held.acknowledged) == ("carol", True)
    with pytest.raises(Refused, match=f"carol works on it until {held.expires_at:%Y-%m-%d %H:%M}"):
        await ack(dave)
    assert (await ack(carol, 7200)).expires_at > held.expires_at, "the same person again"
    with pytest.raises(NotPermitted, match="may not approve"):
        await ack(ben)
    with pytest.raises(UsageError, match="at most 1 day"):
        await ack(carol, 86_401)
    forged = Actor(Source.CLI, "carol", "Carol", person="carol")

    async def forge(conn: Connection) -> datetime:
        return await attention.snooze(conn, number, 1, forged, 60)

    async def overreach(conn: Connection) -> datetime:
        return await attention.snooze(conn, number, 1, await ben.actor(), 60)

    async def forever(conn: Connection) -> datetime:
        return await attention.snooze(conn, number, 1, await carol.actor(), 1e6)

    for rt, work in ((ben, forge), (ben, overreach), (carol, forever), (worker, forge)):
        with pytest.raises(Refused, match=r"may not delay|at most a day|permission denied"):
            await rt.db.run_transaction(work)
    await dave.acknowledgments.snooze(number, 1, await dave.actor(), 600)
    delays = await known.acknowledgments.delays(number, 1)
    assert [(d.person, d.acknowledged) for d in delays] == [("carol", True), ("dave", False)]
    await clock.forward(7201)
    carol = await as_role("carol")
    dave = await as_role("dave")
    assert await known.acknowledgments.delays(number, 1) == []
    assert (await ack(dave)).person == "dave", "that of carol is over"
    events = await known.read_model.job_events(number)
    holders = [event.payload["by"] for event in events if event.kind == "question_acknowledged"]
    assert holders == ["carol", "carol", "dave"]
    await make.decide(number, True, await carol.actor())
    with pytest.raises(QuestionClosed):
        await ack(dave)


async def test_only_people_who_may_answer_delegate_and_are_delegated_to(
    as_role: As, known: Runtime, make: Factory
) -> None:
    number = (await make.asked(GATE)).number
    carol, ben, worker = [await as_role(name) for name in ("carol", "ben", "worker")]
    actor = await carol.actor()

    async def to_ben(conn: Connection) -> datetime:
        return await attention.delegate(conn, number, 1, actor, 60, "ben", None)

    async def to_dave(conn: Connection) -> datetime:
        return await attention.delegate(conn, number, 1, actor, 60, "dave", ANY_TARGET)

    with pytest.raises(NotPermitted, match="ben may not"):
        await carol.acknowledgments.delegate(number, 1, actor, "ben", 60)
    for rt, work in ((carol, to_ben), (ben, to_dave), (worker, to_dave)):
        with pytest.raises(Refused, match=r"may not answer|may not delay|permission denied"):
            await rt.db.run_transaction(work)
    await carol.db.run_transaction(to_dave)
    targets = [delivery.target for delivery in await deliveries_of(known, number)]
    assert targets == ["U-DAVE"], "a person's session cannot choose the target"
    with pytest.raises(Refused, match="permission denied"):
        async with carol.db.connection() as conn:
            await conn.execute("UPDATE draftsman.question_ladders SET due_at = draftsman.now()")


async def test_a_worker_takes_steps_but_escalates_only_by_them(
    as_role: As, known: Runtime, make: Factory
) -> None:
    number = (await make.asked(QUESTION)).number
    worker = await as_role("worker")
    carol = await as_role("carol")
    add = "UPDATE draftsman.job_questions SET approvers = '{dave}' WHERE job = %s"
    async with known.db.connection() as conn:
        await conn.execute(
            "INSERT INTO draftsman.question_ladders (job, question, name, steps, due_at) VALUES"
            " (%s, 1, 'l', %s, draftsman.now())",
            (number, json.dumps([LadderStep(("dave",), escalate=True).as_json()])),
        )
    for _ in range(2):
        with pytest.raises(Refused, match="only after it expired"):
            async with worker.db.connection() as conn:
                await conn.execute(add, (number,))
        await worker.sweeps.run("ladders", LeaderTerm())
    assert (await known.questions.get(number, 1)).approvers == ["dave"]
    async with known.db.connection() as conn:
        taken = await attention.notifications(conn, [number])
    assert [(item.recipient, item.delivery_status) for item in taken] == [("dave", "pending")]
    take = "SELECT draftsman.take_ladder_step(1, 1, 1, now(), NULL, '[]', '{}', NULL)"
    with pytest.raises(Refused, match="permission denied"):
        async with carol.db.connection() as conn:
            await conn.execute(take)


async def test_the_leader_sends_each_reminder_once_after_the_delays(
    known: Runtime, make: Factory, clock: Clock
) -> None:
    async with known.db.connection() as conn:
        await conn.execute(
            "UPDATE draftsman.person_identities SET external_id = replace(external_id, '-', '0')"
        )
    targets = ("slack:U0CAROL", "slack:U0DAVE", "slack:C0TEAM")
    spec = GATE.model_copy(update=DAY)
    held, quiet = [(await make.asked(spec, notify=targets)).number for _ in range(2)]
    direct = (await make.asked(QUESTION.model_copy(update=DAY), notify=targets[:1])).number
    carol, ben = [
        known.policy.resolve(Actor(Source.CLI, name, name.title())) for name in ("carol", "ben")
    ]
    await clock.forward(43_201)
    await known.acknowledgments.acknowledge(held, 1, carol, 3600)
    await known.acknowledgments.snooze(quiet, 1, carol, 3600)
    for _ in range(2):
        await known.sweeps.run_now("remind", make.owner)
    assert await reminders_of(known, held) == [], "carol works on it"
    assert await reminders_of(known, quiet) == ["U0DAVE", "C0TEAM"], "carol snoozed it"
    assert await reminders_of(known, direct) == ["U0CAROL"]
    await clock.forward(3601)
    for _ in range(2):
        await known.sweeps.run_now("remind", make.owner)
    assert sorted(await reminders_of(known, held)) == ["C0TEAM", "U0CAROL", "U0DAVE"]
    assert await reminders_of(known, quiet) == ["U0DAVE", "C0TEAM"], "not repeated"
    async with known.db.connection() as conn:
        counts = await rows(conn, "SELECT reminders FROM draftsman.question_times ORDER BY job")
    assert counts == [(1,), (1,), (1,)]
    assert ben.person == "ben"
