"""Pauses of jobs that are claimed, settled, answered or canceled at the same time."""

from __future__ import annotations

import asyncio

import pytest

from draftsman.database.database import Connection
from draftsman.errors import Refused
from draftsman.jobs.job import Status
from draftsman.jobs.runs.outcome import Done
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.support.races import FirstSession


async def test_a_pause_waits_for_the_claim_and_its_worker_learns_of_it(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection
) -> None:
    number = await make.queued(queue="q")
    claim = first.rt.claim(make.worker, ("q",))
    async with first.doing(claim.exchange([], types=["noop"], free=1, ahead=0)) as taken:
        paused = await first.then(rt.job_control.pause(number, make.owner, "r"), conn)
    assert paused.status is Status.RUNNING
    (job,) = taken.result()
    _, (state,) = await rt.claim(make.worker, ()).heartbeat([job.lease], draining=False)
    assert (state.owned, state.canceled, state.paused) == (True, False, True)


async def test_a_claim_skips_a_job_that_is_being_paused(
    make: Factory, rt: Runtime, first: FirstSession
) -> None:
    number = await make.queued(queue="q")
    claim = rt.claim(make.worker, ("q",))
    async with first.doing(first.rt.job_control.pause(number, make.owner, "r")):
        async with asyncio.timeout(5):
            assert await claim.exchange([], types=["noop"], free=1, ahead=0) == []
    assert await claim.exchange([], types=["noop"], free=1, ahead=0) == []


async def test_a_pause_after_the_end_is_refused(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection
) -> None:
    work = await make.running()
    async with first.doing(first.rt.settlement.outcome(work, Done())):
        with pytest.raises(Refused, match="is already completed; nothing to pause"):
            await first.then(rt.job_control.pause(work.number, make.owner, "r"), conn)


async def test_the_end_of_a_run_waits_for_the_pause_and_counts(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection
) -> None:
    work = await make.running()
    async with first.doing(first.rt.job_control.pause(work.number, make.owner, "r")):
        status = await first.then(rt.settlement.outcome(work, Done()), conn)
    assert status is Status.COMPLETED


async def test_an_answer_waits_for_the_pause_and_starts_nothing(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection
) -> None:
    work = await make.asked(queue="q")
    async with first.doing(first.rt.job_control.pause(work.number, make.owner, "r")):
        assert (await first.then(make.answer(work.number, "red"), conn)).accepted
    claim = rt.claim(make.worker, ("q",))
    assert await claim.exchange([], types=["noop"], free=1, ahead=0) == []
    assert (await rt.read_model.job(work.number)).status is Status.RESUMED


async def test_a_pause_waits_for_the_cancel_and_is_refused(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection
) -> None:
    work = await make.running()
    async with first.doing(first.rt.job_control.cancel(work.number, make.owner)):
        with pytest.raises(Refused, match="is being canceled"):
            await first.then(rt.job_control.pause(work.number, make.owner, "r"), conn)
