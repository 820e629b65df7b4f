"""Pending decisions: undo, application and answers of other channels, in both orders."""

from __future__ import annotations

import pytest

from draftsman.database.database import Connection
from draftsman.errors import Refused
from draftsman.jobs.control.service.control import CancelResult
from draftsman.jobs.job import Status
from draftsman.jobs.pending_decisions.pending_decision import PendingDecision
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.people.actor import Actor
from draftsman.questions.answer import Verdict
from draftsman.questions.question import Decision, QuestionStatus
from draftsman.questions.response import Response
from draftsman.runtime import Runtime
from draftsman_testing.factories import GATE, QUESTION, Factory
from draftsman_testing.people import People
from tests.support.clock import Clock
from tests.support.races import FirstSession
from tests.support.statements import rows

WINDOW = 5.0
SOON = QUESTION.model_copy(update={"expires_in": WINDOW + 1})


async def hold(
    rt: Runtime, actor: Actor, job: int, text: str = "red", event: str = "held"
) -> PendingDecision:
    """Hold an answer to the first question of a job."""
    response = Response(source_event_id=event, text=text)
    held = await rt.pending_decisions.answer(job, 1, response, actor, WINDOW)
    assert isinstance(held, PendingDecision)
    return held


async def test_a_decision_takes_effect_at_the_end_of_its_window_once(
    make: Factory, rt: Runtime, owner: Actor, clock: Clock, conn: Connection
) -> None:
    job, canceled, undone = [(await make.asked()).number for _ in range(3)]
    held = await hold(rt, owner, job)
    again = await hold(rt, owner, job)
    assert again == held  # the reply was lost, and the dashboard repeats it
    with pytest.raises(Refused, match="D-1/1 has your decision; undo it to decide again"):
        await hold(rt, owner, job, event="other")
    cancel = await rt.pending_decisions.cancel(
        canceled, owner, "no", force=False, event="c", window=WINDOW
    )
    assert isinstance(cancel, PendingDecision)
    gone = await hold(rt, owner, undone)
    assert await rt.pending_decisions.undo(gone)
    assert not await rt.pending_decisions.undo(gone)
    assert await rt.pending_decisions.apply(held) is None  # not due
    (open_question,) = await rt.questions.open_of([job])
    assert (open_question.decided_by, open_question.status) == ("root", QuestionStatus.OPEN)
    assert 0 < (await rt.sweeps.next_due() or 0) <= WINDOW

    await clock.forward(WINDOW)
    assert (await rt.sweeps.next_due() or 0) <= 0
    assert await rt.pending_decisions.apply_due(LeaderTerm()) == 2
    assert await rt.pending_decisions.apply_due(LeaderTerm()) == 0
    verdict = await rt.pending_decisions.apply(held)
    assert isinstance(verdict, Verdict)
    assert (verdict.accepted, verdict.duplicate) == (True, True)
    assert verdict.answer_text == "red"
    assert await rt.pending_decisions.apply(cancel) == CancelResult(
        canceled, Status.CANCELED, requested=False
    )
    assert await rt.pending_decisions.apply(gone) is None
    statuses = [(await rt.read_model.job(number)).status for number in (job, canceled, undone)]
    assert statuses == [Status.RESUMED, Status.CANCELED, Status.WAITING_FOR_INPUT]
    assert await rows(conn, "SELECT count(*) FROM draftsman.pending_decisions") == [(0,)]
    events = [event.actor for event in await rt.read_model.job_events(canceled)]
    assert events[-1] == owner.name


async def test_of_two_processes_that_apply_a_decision_one_does(
    make: Factory,
    rt: Runtime,
    first: FirstSession,
    conn: Connection,
    owner: Actor,
    clock: Clock,
) -> None:
    job = (await make.asked()).number
    held = await hold(rt, owner, job)
    await clock.forward(WINDOW)
    await first.reopen()
    async with first.doing(first.rt.pending_decisions.apply(held)) as applied:
        second = await first.then(rt.pending_decisions.apply(held), conn)
    assert isinstance(one := applied.result(), Verdict)
    assert isinstance(second, Verdict)
    assert (one.accepted, one.duplicate, second.accepted, second.duplicate) == (
        *(True, False, True, True),
    )
    assert len((await rt.questions.of_job(job))[1]) == 1


@pytest.mark.parametrize("undone_first", [True, False])
async def test_an_undo_and_the_application_exclude_each_other(
    make: Factory,
    rt: Runtime,
    first: FirstSession,
    conn: Connection,
    owner: Actor,
    clock: Clock,
    undone_first: bool,
) -> None:
    job = (await make.asked()).number
    held = await hold(rt, owner, job)
    await clock.forward(WINDOW)
    await first.reopen()
    if undone_first:
        async with first.doing(first.rt.pending_decisions.undo(held)) as undone:
            applied = await first.then(rt.pending_decisions.apply(held), conn)
        assert (undone.result(), applied) == (True, None)
    else:
        async with first.doing(first.rt.pending_decisions.apply(held)) as effect:
            assert not await first.then(rt.pending_decisions.undo(held), conn)
        assert isinstance(effect.result(), Verdict)
    status = (await rt.questions.get(job, 1)).status
    assert status is (QuestionStatus.OPEN if undone_first else QuestionStatus.ANSWERED)


@pytest.mark.parametrize("other_first", [True, False])
async def test_of_an_answer_of_another_channel_and_a_pending_answer_the_first_effect_counts(
    make: Factory,
    rt: Runtime,
    first: FirstSession,
    conn: Connection,
    owner: Actor,
    people: People,
    clock: Clock,
    other_first: bool,
) -> None:
    job = (await make.asked()).number
    held = await hold(rt, owner, job)
    click = Response(source_event_id="click", text="blue")
    await clock.forward(WINDOW)
    await first.reopen()
    if other_first:
        async with first.doing(first.rt.questions.answer(job, 1, click, people.ben)) as other:
            verdict = await first.then(rt.pending_decisions.apply(held), conn)
        assert other.result().accepted
        assert isinstance(verdict, Verdict)
        assert (verdict.accepted, verdict.reason) == (False, "D-1/1 was already answered by ben")
    else:
        async with first.doing(first.rt.pending_decisions.apply(held)):
            refused = await first.then(rt.questions.answer(job, 1, click, people.ben), conn)
        assert refused.reason == "D-1/1 was already answered by root"
    answers = (await rt.questions.of_job(job))[1]
    assert sorted(answer.accepted for answer in answers) == [False, True]


async def test_a_decision_in_time_counts_although_nobody_applied_it_before_the_expiry(
    make: Factory, rt: Runtime, owner: Actor, clock: Clock
) -> None:
    job = (await make.asked(SOON)).number
    at_once = (await make.asked(SOON.model_copy(update={"expires_in": WINDOW - 1}))).number
    response = Response(source_event_id="soon", text="red")
    verdict = await rt.pending_decisions.answer(at_once, 1, response, owner, WINDOW)
    assert isinstance(verdict, Verdict)
    assert verdict.resolved  # it would have expired in the window
    await hold(rt, owner, job)
    await clock.forward(3600)
    assert await rt.expiry.expire(LeaderTerm()) == 0
    assert await rt.pending_decisions.apply_due(LeaderTerm()) == 1
    assert (await rt.read_model.job(job)).status is Status.RESUMED


async def test_refusals_are_not_held_and_void_decisions_are_forgotten(
    make: Factory, rt: Runtime, people: People, clock: Clock, conn: Connection
) -> None:
    gate = (await make.asked(GATE)).number
    no = Response(source_event_id="ben", decision=Decision.DENY, reason="friday")
    refused = await rt.pending_decisions.answer(gate, 1, no, people.ben, WINDOW)
    assert isinstance(refused, Verdict)
    assert (refused.accepted, "ben" in (refused.reason or "").lower()) == (False, True)
    of_carol = no.model_copy(update={"source_event_id": "carol"})
    denial = await rt.pending_decisions.answer(gate, 1, of_carol, people.carol, WINDOW)
    assert isinstance(denial, PendingDecision)
    ended = (await make.asked()).number
    cancel = await rt.pending_decisions.cancel(
        ended, people.olga, None, force=True, event="c", window=WINDOW
    )
    assert isinstance(cancel, PendingDecision)
    await rt.job_control.cancel(ended, people.olga)
    with pytest.raises(Refused, match="D-2 is already canceled"):
        await rt.pending_decisions.apply(cancel, early=True)
    await clock.forward(WINDOW)
    assert await rt.pending_decisions.apply_due(LeaderTerm()) == 1
    job = await rt.read_model.job(gate)
    assert (job.status, job.last_error) == (Status.FAILED, "denied by carol: friday")
    assert await rows(conn, "SELECT count(*) FROM draftsman.pending_decisions") == [(0,)]
