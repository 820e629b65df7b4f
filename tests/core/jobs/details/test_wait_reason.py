"""Wait reasons for every status, from the view that claims use."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest

from draftsman.database.database import Connection
from draftsman.entities.jobs import next_cell
from draftsman.errors import Failure, NotFound
from draftsman.formats.times import format_time
from draftsman.ids import worker_name
from draftsman.job_types.published.description import TypeDescription
from draftsman.job_types.published.service import publish
from draftsman.jobs.job import TERMINAL, Status
from draftsman.jobs.runs.outcome import Cancel, Done
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.people.actor import Actor
from draftsman.questions.question import OnExpire
from draftsman.runtime import Runtime
from draftsman_testing.factories import GATE, QUESTION, Factory
from tests.support.cases import cases
from tests.support.clock import Clock

REASONS = {
    Status.SCHEDULED: "scheduled",
    Status.QUEUED: "no_worker",
    Status.CLAIMED: "claimed",
    Status.RUNNING: "running",
    Status.WAITING_FOR_INPUT: "question",
    Status.WAITING_FOR_APPROVAL: "question",
    Status.RESUMED: "no_worker",
    Status.RETRYING: "backoff",
} | dict.fromkeys(TERMINAL - {Status.EXPIRED}, "ended")
REASONS[Status.EXPIRED] = "expired"


@cases("status", Status)
async def test_every_status_has_a_reason_and_a_next_step(
    make: Factory, rt: Runtime, status: Status
) -> None:
    why = await rt.read_model.why(await make.job_in(status))
    assert (why.status, why.reason) == (status, REASONS[status])
    assert why.text
    assert why.next_step


async def test_a_retry_is_from_a_checkpoint_only_if_there_is_one(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    never = await make.queued()
    await rt.job_control.cancel(never, owner)
    parent = await make.running()
    child = await make.queued(after=(parent.number,))
    await rt.settlement.failure(parent, Failure("broken", declared="PERMANENT"))
    saved = await make.running()
    await rt.checkpoints.save(saved.lease, {"page": 2})
    await rt.checkpoints.log(saved.lease, 1, "page 2")
    await rt.settlement.failure(saved, Failure("broken", declared="PERMANENT"))
    steps = [
        (await rt.read_model.why(number)).next_step.partition("; to take")[0]
        for number in (never, child, parent.number)
    ]
    assert steps == [
        f"it never started; to run it: draftsman retry D-{never}",
        f"it never started; to run it: draftsman retry D-{child}",
        f"to retry: draftsman retry {parent.name}",
    ]
    step = (await rt.read_model.why(saved.number)).next_step
    assert step == (
        f"to retry from the last checkpoint: draftsman retry {saved.name}; to read its log:"
        f" draftsman logs {saved.name}; to take it out of attention:"
        f" draftsman dismiss {saved.name}"
    )


async def test_a_job_that_was_retried_names_its_retry(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    failed = await make.failed()
    retry = await rt.job_control.retry(failed, owner)
    why = await rt.read_model.why(failed)
    assert (why.reason, why.retried_as) == ("retried", retry.number)
    assert why.text.endswith(f"; retried as {retry.name}")
    assert why.next_step == f"to see the retry: draftsman show {retry.name}"
    assert (await rt.read_model.why(retry.number)).retried_as is None


async def test_an_unknown_job_is_not_found(rt: Runtime) -> None:
    with pytest.raises(NotFound, match="D-999"):
        await rt.read_model.why(999)


async def test_a_queued_job_waits_for_a_worker_of_its_queue(make: Factory, rt: Runtime) -> None:
    number = await make.queued(queue="q")
    await make.worker_row(queues=["other"])
    why = await rt.read_model.why(number)
    assert (why.reason, why.next_step) == (
        "no_worker",
        "to start a worker: draftsman worker --queue q",
    )
    await make.worker_row(queues=["q"])
    assert (await rt.read_model.why(number)).reason == "next"


async def test_a_draining_or_silent_worker_does_not_count(
    make: Factory, rt: Runtime, clock: Clock
) -> None:
    number = await make.queued(queue="default")
    worker = await make.worker_row()
    claim = rt.claim(worker, ())
    await claim.heartbeat([], draining=True)
    assert (await rt.read_model.why(number)).reason == "no_worker"
    await claim.heartbeat([], draining=False)
    assert (await rt.read_model.why(number)).reason == "next"
    await clock.forward(301)
    assert (await rt.read_model.why(number)).reason == "no_worker"


async def test_a_type_without_a_worker_is_named(make: Factory, rt: Runtime) -> None:
    number = await make.queued(queue="default", type="odd")
    await make.worker_row(types=["noop"])
    why = await rt.read_model.why(number)
    assert (why.reason, why.text) == (
        "unknown_type",
        "no live worker of the queue 'default' handles the type 'odd'",
    )
    end = f"; to end it: draftsman cancel D-{number}"
    unpublished = "to start one with the module of the type: draftsman worker --app MODULE"
    assert why.next_step == f"{unpublished}, or add it to [handlers]{end}"
    later = await make.scheduled(delay=3600, queue="default", type="odd")
    assert (await rt.read_model.why(later)).next_step.endswith(
        f"; but no live worker of its queue has its type; {unpublished}, or add it to [handlers]"
    )
    (row, _) = await rt.read_model.with_figures((await rt.read_model.page()).jobs[::-1])
    assert next_cell(row, datetime.now(UTC)).text == "a worker with the type odd"


async def test_the_app_that_had_a_type_is_named_where_no_worker_has_it(
    make: Factory, rt: Runtime, conn: Connection
) -> None:
    await publish(conn, [TypeDescription(name="shop:refund", place="shop:refund", app="shop")])
    number = await make.queued(queue="default", type="shop:refund")
    assert (await rt.read_model.why(number)).next_step == (
        "to start a worker: draftsman up --app shop"
    )
    await make.worker_row(types=["noop"])
    assert (await rt.read_model.why(number)).next_step == (
        f"to start one: draftsman worker --app shop; to end it: draftsman cancel D-{number}"
    )


async def test_a_queued_job_has_its_position_in_the_order_of_claims(
    make: Factory, rt: Runtime
) -> None:
    await make.worker_row(slots=4)
    last = await make.queued(queue="default")
    urgent = await make.queued(queue="default", priority=5)
    await make.queued(queue="default", priority=-5)
    await make.queued(queue="other", priority=9)
    behind = await rt.read_model.why(last)
    first = await rt.read_model.why(urgent)
    assert (behind.reason, first.reason) == ("behind", "next")
    assert behind.text == "1 job is ahead of it in the queue 'default'"
    assert behind.next_step == "4 slots serve the queue"
    await make.running(urgent)
    assert (await rt.read_model.why(last)).reason == "next"


async def test_the_job_reported_as_next_is_claimed_next(make: Factory, rt: Runtime) -> None:
    await make.worker_row()
    numbers = [await make.queued(queue="default", priority=p) for p in (0, 3, 1, 3)]
    claim = rt.claim(uuid4(), ("default",))
    while numbers:
        (announced,) = [n for n in numbers if (await rt.read_model.why(n)).reason == "next"]
        (work,) = await claim.exchange([], types=["noop"], free=1, ahead=0)
        assert work.number == announced
        numbers.remove(announced)


async def test_a_waiting_job_shows_its_question_and_how_to_answer(
    make: Factory, rt: Runtime
) -> None:
    asked = await make.asked()
    gate = await make.asked(GATE)
    why = await rt.read_model.why(asked.number)
    assert why.text == f"{asked.name}/1 needs an answer: Which one?"
    assert why.next_step.startswith(f"to answer: draftsman answer {asked.name}/1; expires ")
    why = await rt.read_model.why(gate.number)
    assert why.text == f"{gate.name}/1 needs approval from carol, dave: Deploy?"
    assert f"draftsman approve {gate.name}/1" in why.next_step


async def test_a_question_that_never_expires_shows_no_expiry(make: Factory, rt: Runtime) -> None:
    work = await make.asked(QUESTION.model_copy(update={"never_expires": True}))
    assert "expires" not in (await rt.read_model.why(work.number)).next_step


async def test_a_future_and_an_elapsed_due_time_are_reported(
    make: Factory, rt: Runtime, clock: Clock
) -> None:
    await make.worker_row()
    number = await make.scheduled(delay=7200, queue="default")
    due = (await rt.read_model.job(number)).run_at
    assert due is not None
    at = f"at {format_time(due)}"
    why = await rt.read_model.why(number)
    assert (why.text, why.next_step) == (f"due in 2 h, {at}", "the leader will queue it then")
    await clock.forward(7200 - 600)
    why = await rt.read_model.why(number)
    assert why.text == f"due in 10 min, {at}"
    assert why.next_step == (
        "the leader will queue it then; but no live worker serves its queue;"
        " to start one: draftsman up"
    )
    await clock.forward(700)
    await make.worker_row()
    why = await rt.read_model.why(number)
    assert (why.text, why.next_step) == ("due now", "the leader will queue it")


async def test_backoff_shows_the_budget_and_the_error(make: Factory, rt: Runtime) -> None:
    await make.worker_row()
    busy = await make.retrying(queue="default", overrides={"base_delay": 1000, "max_delay": 1000})
    await make.set_due(busy, 90)
    why = await rt.read_model.why(busy)
    assert (why.reason, why.text) == ("backoff", "run 1 failed: busy")
    due = (await rt.read_model.job(busy)).next_retry_at
    assert due is not None
    assert why.next_step == f"next retry in 90 s, at {format_time(due)} (retry 1 of 3)"
    assert why.due_in == pytest.approx(90, abs=5)
    lost = await make.running(queue="default", worker=(lost_hands := uuid4()))
    await rt.dead_workers.rescue(LeaderTerm(), [lost_hands])
    await make.set_due(lost.number, 7200)
    why = await rt.read_model.why(lost.number)
    assert why.text == "run 1 failed: the worker was lost"
    assert why.next_step.startswith("next retry in 2 h, at ")
    assert why.next_step.endswith(" UTC (attempt 2 of 3)")


async def test_the_time_until_the_next_attempt_uses_the_clock_of_the_database(
    make: Factory, rt: Runtime, clock: Clock
) -> None:
    number = await make.retrying(queue="default")
    await make.set_due(number, 600)
    await clock.forward(540)
    await make.worker_row()
    why, [line] = await rt.read_model.why(number), await rt.read_model.jobs()
    assert why.next_step.startswith(("next retry in 60 s, at ", "next retry in 59 s, at "))
    assert line.due_in == pytest.approx(why.due_in, abs=5)
    await clock.forward(61)
    await make.worker_row()
    next_step = (await rt.read_model.why(number)).next_step
    assert next_step == "next retry now; the leader will queue it (retry 1 of 3)"
    assert await rt.promotion.promote(LeaderTerm()) == 1
    why, [line] = await rt.read_model.why(number), await rt.read_model.jobs()
    assert (why.status, why.due_in, line.due_in) == (Status.QUEUED, None, None)


async def test_a_running_job_names_its_worker_and_the_last_heartbeat(
    make: Factory, rt: Runtime, clock: Clock
) -> None:
    await make.worker_row(id=make.worker, host="far", pid=7)
    work = await make.running()
    await clock.forward(20)
    why = await rt.read_model.why(work.number)
    name = f"worker {worker_name(make.worker)} on far"
    assert why.text == f"{name} is running it; last heartbeat 20 s ago"
    await rt.job_control.cancel(work.number, make.owner)
    why = await rt.read_model.why(work.number)
    assert (why.reason, why.text) == ("canceling", f"{name} is stopping it")


@pytest.mark.parametrize("status", [Status.CLAIMED, Status.RUNNING])
async def test_a_job_is_lost_exactly_when_it_is_rescued(
    make: Factory, rt: Runtime, clock: Clock, status: Status
) -> None:
    await make.worker_row(id=make.worker, host="far")
    work = await (make.claimed() if status is Status.CLAIMED else make.running())
    lease = rt.settings.worker.lease
    for seconds, lost in ((lease - 1, 0), (2, 1)):
        await clock.forward(seconds)
        why = await rt.read_model.why(work.number)
        assert (why.reason == "lost") == bool(lost)
        rescued = await rt.dead_workers.rescue(LeaderTerm())
        assert rescued == lost
    assert why.text.startswith(f"worker {worker_name(make.worker)} on far is lost: no heartbeat")
    assert ("will queue it again" in why.next_step) == (status is Status.CLAIMED)
    assert (await rt.read_model.why(work.number)).reason != "lost"


async def test_a_claimed_job_names_its_worker(make: Factory, rt: Runtime) -> None:
    work = await make.claimed()
    why = await rt.read_model.why(work.number)
    assert (why.reason, why.text) == (
        "claimed",
        f"prefetched by worker {worker_name(make.worker)}",
    )


async def test_a_finished_job_shows_its_outcome(make: Factory, rt: Runtime) -> None:
    number = await make.failed()
    why = await rt.read_model.why(number)
    assert why.text == "no such thing; will not be retried: another run would fail in the same way"
    assert f"draftsman retry D-{number}" in why.next_step
    dead = await rt.read_model.why(await make.dead())
    assert dead.text == "gone; will not be retried: its only attempt is used"


async def test_a_canceled_job_shows_its_person_and_reason(make: Factory, rt: Runtime) -> None:
    work = await make.running()
    await rt.settlement.outcome(work, Cancel("the card was archived"))
    why = await rt.read_model.why(work.number)
    assert why.text == f"canceled by worker {worker_name(make.worker)}: the card was archived"


async def test_a_completed_retry_shows_no_error(make: Factory, rt: Runtime) -> None:
    number = await make.retrying()
    await make.set_due(number, 0)
    await rt.promotion.promote(LeaderTerm())
    work = await make.running(number)
    await rt.settlement.outcome(work, Done({}))
    why = await rt.read_model.why(number)
    assert (why.status, why.text) == (Status.COMPLETED, "finished")
    assert f"draftsman retry D-{number} --again" in why.next_step


async def test_an_expired_job_names_the_question_that_ended_it(
    make: Factory, rt: Runtime, clock: Clock
) -> None:
    work = await make.asked(QUESTION.model_copy(update={"on_expire": OnExpire.CONTINUE}))
    await clock.forward(86_401)
    await rt.expiry.expire(LeaderTerm())
    work = await make.running(work.number)
    gate: dict[str, Any] = {"key": "g", "expires_in": 600, "escalate_to": "carol"}
    gate |= {"on_expire": OnExpire.ESCALATE}
    await rt.asking.ask(work.lease, GATE.model_copy(update=gate))
    for _ in range(2):
        await clock.forward(601)
        await rt.expiry.expire(LeaderTerm())
    why = await rt.read_model.why(work.number)
    assert (why.status, why.reason) == (Status.EXPIRED, "expired")
    assert why.text.startswith(f"{work.name}/2 expired at ")
    assert ": no decision within 20 min (escalated to carol): " in why.text
    assert [span for span in why.text_spans if isinstance(span, datetime)], "a time of the reader"
    assert f"draftsman retry {work.name}" in why.next_step
