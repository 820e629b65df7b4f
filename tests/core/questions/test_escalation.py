"""An expired question escalates to more people, once, and stays open."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from draftsman.errors import UsageError
from draftsman.jobs.job import Status
from draftsman.jobs.runs.run import ClaimedJob, LeaderTerm
from draftsman.questions.question import OnExpire, QuestionStatus
from draftsman.questions.question_spec import QuestionSpec
from draftsman.runtime import Runtime, wire
from draftsman_testing.factories import GATE, QUESTION, Factory
from draftsman_testing.outbox import LOG, deliveries_of, kinds_and_statuses, send_all
from draftsman_testing.people import People
from tests.support.clock import Clock

TO_LEADS: dict[str, Any] = {
    "on_expire": OnExpire.ESCALATE,
    "escalate_to": "leads",
    "expires_in": 100.0,
}
ASK = QUESTION.model_copy(update=TO_LEADS)
ERINS = GATE.model_copy(update=TO_LEADS | {"approvers": ("erin",)})


async def _escalated(
    make: Factory, clock: Clock, item: QuestionSpec = ASK, **fields: Any
) -> ClaimedJob:
    work = await make.asked(item, **fields)
    await clock.forward(110)
    assert await make.rt.expiry.expire(LeaderTerm()) == 1
    return work


async def test_an_escalated_question_stays_open_for_the_same_time_again(
    make: Factory, rt: Runtime, clock: Clock
) -> None:
    work = await _escalated(make, clock)
    question = await rt.questions.get(work.number, 1)
    job = await rt.read_model.job(work.number)
    assert (question.status, job.status) == (QuestionStatus.OPEN, Status.WAITING_FOR_INPUT)
    assert question.escalated_at is not None
    assert question.expires_at is not None
    assert 99.9 < (question.expires_at - question.escalated_at).total_seconds() <= 100
    last = (await rt.read_model.job_events(work.number))[-1]
    assert (last.kind, last.actor) == ("question_escalated", "system")
    payload = dict(last.payload)
    assert datetime.fromisoformat(payload.pop("expires_at")) == question.expires_at
    assert payload == {"question": 1, "key": "pick", "escalate_to": "leads"}
    assert await rt.expiry.expire(LeaderTerm()) == 0


async def test_an_escalated_question_expires_the_second_time(
    make: Factory, rt: Runtime, clock: Clock
) -> None:
    work = await _escalated(make, clock)
    await clock.forward(110)
    assert await rt.expiry.expire(LeaderTerm()) == 1
    question = await rt.questions.get(work.number, 1)
    assert (await rt.read_model.job(work.number)).status is Status.EXPIRED
    assert question.resolution == {"outcome": "expired", "via": "system"}


async def test_an_approval_escalates_too(
    make: Factory, rt: Runtime, clock: Clock, people: People
) -> None:
    work = await make.asked(ERINS)
    assert not (await make.decide(work.number, True, people.carol)).accepted
    await clock.forward(110)
    await rt.expiry.expire(LeaderTerm())
    assert (await rt.questions.get(work.number, 1)).approvers == ["erin", "leads"]
    assert (await make.decide(work.number, True, people.carol)).resolved
    assert (await rt.read_model.job(work.number)).status is Status.RESUMED


async def test_votes_of_the_first_group_still_count(
    make: Factory, rt: Runtime, clock: Clock, people: People
) -> None:
    work = await make.asked(ERINS.model_copy(update={"quorum": 2}))
    await make.decide(work.number, True, people.erin)
    await clock.forward(110)
    await rt.expiry.expire(LeaderTerm())
    assert (await make.decide(work.number, True, people.dave)).resolved


async def test_people_of_the_escalation_can_answer_without_a_role(
    make: Factory, rt: Runtime, clock: Clock, people: People
) -> None:
    work = await make.asked(ASK)
    assert not (await make.answer(work.number, "red", people.carol)).accepted
    await clock.forward(110)
    await rt.expiry.expire(LeaderTerm())
    assert not (await make.answer(work.number, "red", people.erin)).accepted
    assert (await make.answer(work.number, "red", people.carol)).accepted


async def test_the_first_responders_can_still_answer(
    make: Factory, clock: Clock, people: People
) -> None:
    work = await _escalated(make, clock)
    assert (await make.answer(work.number, "red", people.ben)).accepted


async def test_an_answer_between_the_expiry_and_the_sweep_is_accepted_after_an_escalation(
    make: Factory, rt: Runtime, clock: Clock, people: People
) -> None:
    works = [await make.asked(ASK) for _ in range(3)]
    await clock.forward(110)
    assert (await make.answer(works[0].number, "red", people.ben)).accepted
    until = await rt.questions.extend(works[1].number, 1, 500, people.olga)
    assert await rt.expiry.expire(LeaderTerm()) == 1
    assert (await rt.questions.get(works[1].number, 1)).expires_at == until
    assert (await rt.questions.get(works[2].number, 1)).escalated_at is not None


async def test_an_answer_after_the_second_expiry_is_late(
    make: Factory, clock: Clock, people: People
) -> None:
    work = await _escalated(make, clock)
    await clock.forward(110)
    late = await make.answer(work.number, "red", people.ben)
    assert late.reason == f"{work.name}/1 expired before this answer arrived"


async def test_every_target_is_asked_again_and_every_copy_is_closed(
    make: Factory, rt: Runtime, clock: Clock
) -> None:
    work = await make.asked(ASK, **LOG)
    await send_all(rt)
    await clock.forward(110)
    await rt.expiry.expire(LeaderTerm())
    await rt.expiry.expire(LeaderTerm())
    assert (await kinds_and_statuses(rt, work.number))[-1] == ("question", "pending")
    await send_all(rt)
    await make.answer(work.number, "red")
    kinds = [str(delivery.kind) for delivery in await deliveries_of(rt, work.number)]
    assert (kinds.count("question"), kinds.count("question_closed")) == (2, 2)
    assert not any((await rt.read_model.invariants()).values())


async def test_an_unsent_copy_is_not_sent_twice(make: Factory, rt: Runtime, clock: Clock) -> None:
    work = await make.asked(ASK, **LOG)
    await clock.forward(110)
    await rt.expiry.expire(LeaderTerm())
    kinds = [str(delivery.kind) for delivery in await deliveries_of(rt, work.number)]
    assert kinds.count("question") == 1


async def test_an_escalated_question_has_its_own_reminders(
    make: Factory, rt: Runtime, clock: Clock
) -> None:
    work = await make.asked(ASK, **LOG)
    counts = []
    for seconds in (51, 40, 10, 51, 40):  # 51, 91, 101: escalated; then 51, 91 of the new time
        await clock.forward(seconds)
        await rt.expiry.expire(LeaderTerm())
        await rt.sweeps.run("remind", LeaderTerm())
        counts.append((await rt.questions.get(work.number, 1)).reminders)
    assert counts == [1, 2, 2, 3, 3]
    kinds = [str(delivery.kind) for delivery in await deliveries_of(rt, work.number)]
    assert kinds.count("reminder") == 3


async def test_the_configured_escalation_target_is_the_default(make: Factory, rt: Runtime) -> None:
    question_settings = rt.settings.questions.model_copy(update={"escalate_to": "leads"})
    configured = wire(rt.settings.model_copy(update={"questions": question_settings}), rt.db, False)
    spec = ASK.model_copy(update={"escalate_to": None})
    work = await make.running()
    with pytest.raises(UsageError, match="has no escalation target; set escalate_to"):
        await rt.asking.ask(work.lease, spec)
    with pytest.raises(UsageError, match="'boss' is not a group or person; known: anna, ben"):
        await rt.asking.ask(work.lease, ASK.model_copy(update={"escalate_to": "boss"}))
    assert await configured.asking.ask(work.lease, spec) == f"{work.name}/1"
    assert (await rt.questions.get(work.number, 1)).escalate_to == "leads"
