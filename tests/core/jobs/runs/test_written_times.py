"""Columns that a claim, a start and an end write beside the status, and whom they notify."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from draftsman.database.database import Connection
from draftsman.errors import Failure
from draftsman.jobs.runs.outcome import Done, Snooze
from draftsman.jobs.runs.run import ClaimedJob
from draftsman.jobs.runs.service.claim import Claim
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.support.cases import cases
from tests.support.statements import value

Step = Callable[[Runtime, Claim, ClaimedJob], Awaitable[Any]]
RELEASE: Step = lambda _, claim, work: claim.release_claims([work.lease], "the worker stops")  # noqa: E731
LOSE: Step = lambda _, claim, work: claim.release_lost_claims([])  # noqa: E731
HAND_BACK: Step = lambda rt, _, work: rt.settlement.release_run(work, "shutdown")  # noqa: E731
STARTS: dict[str, Step] = {
    "start": lambda _, claim, work: claim.start([work.lease]),
    "release": RELEASE,
    "lose": LOSE,
}
ENDS: dict[str, Step] = {
    "lose": LOSE,
    "hand back": HAND_BACK,
    "complete": lambda rt, _, work: rt.settlement.outcome(work, Done({"n": 1})),
    "snooze": lambda rt, _, work: rt.settlement.outcome(work, Snooze(60.0)),
    "fail": lambda rt, _, work: rt.settlement.failure(work, Failure("no", declared="PERMANENT")),
    "retry": lambda rt, _, work: rt.settlement.failure(work, Failure("busy", http_status=503)),
}
NOW = "SELECT draftsman.now()"
"""The time of a statement, which the next transaction writes at the earliest."""


@cases(
    ("step", "is_running"),
    [*((step, False) for step in STARTS.values()), *((step, True) for step in ENDS.values())],
    ids=[*(f"claimed: {name}" for name in STARTS), *(f"running: {name}" for name in ENDS)],
)
async def test_each_change_of_a_job_has_its_time(
    rt: Runtime, make: Factory, conn: Connection, step: Step, is_running: bool
) -> None:
    before = await value(conn, NOW)
    work = await (make.running() if is_running else make.claimed())
    claimed = await rt.read_model.job(work.number)
    assert claimed.updated_at == claimed.claimed_at
    assert claimed.updated_at > before
    before = await value(conn, NOW)
    await step(rt, rt.claim(make.worker, ()), work)
    assert (await rt.read_model.job(work.number)).updated_at > before


async def test_the_pull_request_of_a_job_is_a_change_with_its_time(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    work = await make.running()
    before = await value(conn, NOW)
    await rt.checkpoints.pull_request(work.lease, "https://forge.example/pull/7")
    job = await rt.read_model.job(work.number)
    assert job.pr_url == "https://forge.example/pull/7"
    assert job.updated_at > before


@pytest.mark.parametrize("step", [LOSE, HAND_BACK], ids=["lose", "hand back"])
async def test_a_run_that_goes_back_is_queued_anew(
    rt: Runtime, make: Factory, conn: Connection, step: Step
) -> None:
    work = await make.running()
    before = await value(conn, NOW)
    await step(rt, rt.claim(make.worker, ()), work)
    job = await rt.read_model.job(work.number)
    assert job.queued_at is not None
    assert job.queued_at > before
    (run,) = await rt.read_model.runs(work.number)
    assert run.finished_at == job.updated_at


async def test_a_job_that_ends_keeps_the_time_at_which_it_was_queued(
    rt: Runtime, make: Factory
) -> None:
    work = await make.running()
    queued_at = (await rt.read_model.job(work.number)).queued_at
    await rt.settlement.outcome(work, Done({"n": 1}))
    assert (await rt.read_model.job(work.number)).queued_at == queued_at


@pytest.mark.parametrize(
    ("step", "is_running", "notifies"),
    [
        (RELEASE, False, True),
        (LOSE, False, True),
        (LOSE, True, True),
        (HAND_BACK, True, True),
        (ENDS["complete"], True, False),
        (ENDS["snooze"], True, False),
    ],
    ids=["release", "lose a claim", "lose a run", "hand back", "complete", "snooze"],
)
async def test_workers_are_notified_of_a_job_that_goes_back(
    rt: Runtime, make: Factory, conn: Connection, step: Step, is_running: bool, notifies: bool
) -> None:
    work = await (make.running() if is_running else make.claimed())
    await conn.execute("LISTEN draftsman_jobs")
    await step(rt, rt.claim(make.worker, ()), work)
    await conn.execute("NOTIFY draftsman_jobs, 'the end'")
    queues = [notice.payload async for notice in conn.notifies(timeout=30, stop_after=1)]
    assert queues[0] == (work.queue if notifies else "the end")


async def test_a_lost_claim_of_a_canceled_job_ends_it_at_that_time(
    rt: Runtime, make: Factory
) -> None:
    work = await make.running()
    other = await make.running()
    await rt.job_control.cancel(work.number, make.owner)
    await rt.claim(make.worker, ()).release_lost_claims([])
    job = await rt.read_model.job(work.number)
    (run,) = await rt.read_model.runs(work.number)
    assert (run.status, run.finished_at) == ("canceled", job.finished_at)
    assert job.finished_at == job.updated_at
    back = await rt.read_model.job(other.number)
    (run,) = await rt.read_model.runs(other.number)
    assert (back.finished_at, run.status) == (None, "interrupted")
    assert (back.worker_id, back.claimed_from) == (None, None)
