"""Cancel: at once without a run, through the worker with a run."""

from __future__ import annotations

import pytest

from draftsman.errors import LeaseLost, NotFound, NotPermitted, Refused
from draftsman.jobs.job import TERMINAL, Status
from draftsman.jobs.runs.outcome import Done
from draftsman.jobs.runs.run import RunStatus
from draftsman.questions.question import QuestionStatus
from draftsman.runtime import Runtime
from draftsman.text import humanize
from draftsman_testing.factories import GATE, Factory
from draftsman_testing.people import People
from tests.support.cases import cases

AT_ONCE = sorted({*Status} - TERMINAL - {Status.RUNNING}, key=str)


@cases("status", AT_ONCE, ids=str)
@cases("force", [False, True], ids=["", "forced"])
async def test_a_job_that_does_not_run_is_canceled_at_once(
    make: Factory, rt: Runtime, people: People, status: Status, force: bool
) -> None:
    number = await make.job_in(status)
    canceled = await rt.job_control.cancel(number, people.olga, "enough", force=force)
    assert (canceled.status, canceled.requested) == (Status.CANCELED, False)
    job = await rt.read_model.job(number)
    assert (job.status, job.cancel_requested_by, job.cancel_reason) == (
        Status.CANCELED,
        "cli:olga",
        "enough",
    )
    assert (job.worker_id, job.claimed_from, job.next_retry_at) == (None, None, None)
    assert not any((await rt.read_model.invariants()).values())


async def test_a_running_job_is_asked_to_stop(make: Factory, rt: Runtime, people: People) -> None:
    work = await make.running()
    canceled = await rt.job_control.cancel(work.number, people.olga, "enough")
    assert (canceled.status, canceled.requested) == (Status.RUNNING, True)
    job = await rt.read_model.job(work.number)
    assert (job.status, job.cancel_requested_by) == (Status.RUNNING, "cli:olga")
    event = (await rt.read_model.job_events(work.number))[-1]
    assert (event.kind, event.actor, event.payload) == (
        "cancel_requested",
        "cli:olga",
        {"reason": "enough"},
    )


async def test_the_next_write_of_its_run_reports_the_cancel(make: Factory, rt: Runtime) -> None:
    work = await make.running()
    await rt.job_control.cancel(work.number, make.owner)
    with pytest.raises(LeaseLost):
        await rt.checkpoints.save(work.lease, {})
    await rt.checkpoints.log(work.lease, 1, "its last words are kept")


async def test_a_second_cancel_keeps_the_first_and_has_the_same_result(
    make: Factory, rt: Runtime, people: People
) -> None:
    work = await make.running()
    first = await rt.job_control.cancel(work.number, people.olga, "first")
    assert await rt.job_control.cancel(work.number, make.owner, "second") == first
    assert (await rt.read_model.job(work.number)).cancel_reason == "first"
    kinds = [event.kind for event in await rt.read_model.job_events(work.number)]
    assert kinds.count("cancel_requested") == 1


async def test_a_forced_cancel_ends_a_running_job_at_once_and_its_run_writes_nothing(
    make: Factory, rt: Runtime, people: People
) -> None:
    work = await make.running()
    await rt.job_control.cancel(work.number, people.olga, "soft")
    canceled = await rt.job_control.cancel(work.number, make.owner, "hard", force=True)
    assert (canceled.status, canceled.requested) == (Status.CANCELED, False)
    job = await rt.read_model.job(work.number)
    assert (job.cancel_reason, job.cancel_requested_by) == ("soft", "cli:olga")
    assert (await rt.read_model.runs(work.number))[0].status is RunStatus.CANCELED
    assert await rt.settlement.outcome(work, Done({"n": 1})) is None
    with pytest.raises(LeaseLost):
        await rt.checkpoints.log(work.lease, 1, "too late")
    assert await rt.read_model.job(work.number) == job


async def test_a_canceled_job_closes_its_question(
    make: Factory, rt: Runtime, people: People
) -> None:
    work = await make.asked(GATE)
    await rt.job_control.cancel(work.number, people.olga)
    question = await rt.questions.get(work.number, 1)
    assert question.status is QuestionStatus.CANCELED
    assert question.resolution == {"outcome": "canceled", "via": "person", "by": ["cli:olga"]}
    assert await rt.questions.open() == []


@pytest.mark.parametrize("status", sorted(TERMINAL, key=str), ids=str)
async def test_a_late_cancel_is_refused_with_the_final_status(
    make: Factory, rt: Runtime, status: Status
) -> None:
    number = await make.job_in(status)
    before = await rt.read_model.job(number)
    with pytest.raises(Refused, match=f"D-{number} is already {humanize(status)}"):
        await rt.job_control.cancel(number, make.owner, force=True)
    assert await rt.read_model.job(number) == before


async def test_an_unknown_job_is_not_found(make: Factory, rt: Runtime) -> None:
    with pytest.raises(NotFound, match="D-999"):
        await rt.job_control.cancel(999, make.owner)


async def test_an_operator_can_cancel_any_job_and_an_invoker_only_own_jobs(
    make: Factory, rt: Runtime, people: People
) -> None:
    number = await make.queued(actor=people.anna)
    for actor in (people.erin, people.ben, people.carol, people.on("slack", "anna-2")):
        with pytest.raises(NotPermitted, match="may not cancel"):
            await rt.job_control.cancel(number, actor)
    assert (await rt.read_model.job(number)).status is Status.QUEUED
    await rt.job_control.cancel(number, people.on("slack", "anna"))
    await rt.job_control.cancel(await make.queued(actor=people.anna), people.olga)
