"""The leader reminds and escalates in time, and neither again after a restart."""

from __future__ import annotations

from functools import partial

from draftsman.deliveries.delivery import DeliveryKind
from draftsman.handlers.context import RunContext
from draftsman.jobs.runs.outcome import Done, Outcome
from draftsman.runtime import Runtime
from draftsman_testing.factories import QUESTION, Factory
from draftsman_testing.outbox import LOG, deliveries_of
from draftsman_testing.waits import until
from tests.core.worker.test_leader import SELDOM, leads
from tests.core.worker.workers import last_event, running_worker, runtime_with
from tests.support.clock import Clock


async def handler(ctx: RunContext) -> Outcome:
    """Ask with an expiry of four seconds, then escalate."""
    await ctx.ask(
        "pick",
        "Which?",
        choices=["a", "b"],
        expires_in=4,
        on_expire="escalate",
        escalate_to="leads",
    )
    return Done({})


async def _reminders(rt: Runtime, number: int) -> list[float]:
    """Return the seconds from the question to each reminder."""
    asked_at = (await rt.questions.get(number, 1)).asked_at
    deliveries = [
        delivery
        for delivery in await deliveries_of(rt, number)
        if delivery.kind is DeliveryKind.REMINDER
    ]
    return [(delivery.created_at - asked_at).total_seconds() for delivery in deliveries]


async def test_people_are_reminded_to_the_second_before_an_escalation(
    rt: Runtime, make: Factory
) -> None:
    async with running_worker(
        runtime_with(rt, sweeps=SELDOM), {"noop": handler}, leader=True
    ) as process:
        await until(lambda: leads(rt, process), "the leader")
        number = await make.queued(queue="default", notify=("slack:C1",))
        await until(lambda: _escalated(rt, number), "the escalation")
        question = await rt.questions.get(number, 1)
        await make.answer(number, "a")
    half, most = (await _reminders(rt, number))[:2]
    assert 2.0 <= half < 3.5
    assert 3.6 <= most < 5.1
    escalated = await last_event(rt, number, "question_escalated")
    assert question.escalated_at is not None
    assert (escalated.created_at - question.asked_at).total_seconds() >= 4


async def test_a_restart_repeats_no_reminder(rt: Runtime, make: Factory, clock: Clock) -> None:
    short, long = (QUESTION.model_copy(update={"expires_in": time}) for time in (10.0, 100.0))
    first = await make.asked(long, **LOG)
    await clock.forward(60)
    for leaders in (1, 2):
        later = (await make.asked(short, **LOG)).number
        await clock.forward(6)
        async with running_worker(runtime_with(rt, sweeps=SELDOM), {}, leader=True):
            for number in (later, first.number):  # two sweeps may send a reminder each
                await until(partial(_reminded, rt, number), f"the reminder of D-{number}")
        assert len(await _reminders(rt, first.number)) == 1, f"after {leaders} leaders"


async def _reminded(rt: Runtime, number: int) -> bool:
    return bool(await _reminders(rt, number))


async def _escalated(rt: Runtime, number: int) -> bool:
    questions = await rt.questions.open(number)
    return bool(questions) and questions[0].escalated_at is not None
