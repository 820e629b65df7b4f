"""Runs that end concurrently with cancels, rescues, heartbeats and stale workers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

import pytest

from draftsman.database.database import Connection
from draftsman.errors import Failure, LeaseLost, Refused
from draftsman.jobs.job import Status
from draftsman.jobs.runs.outcome import Done
from draftsman.jobs.runs.quota import Quota, QuotaLimit
from draftsman.jobs.runs.run import ClaimedJob, LeaderTerm, RunStatus
from draftsman.jobs.runs.store import claim as claims
from draftsman.runtime import Runtime
from draftsman.worker import store as worker
from draftsman.worker.store import RescuedJob
from draftsman_testing.factories import QUESTION, Factory
from tests.support.clock import Clock
from tests.support.races import FirstSession


async def _rescue(rt: Runtime, make: Factory) -> list[RescuedJob]:
    """Rescue the factory worker's jobs in a transaction, as the sweep does."""
    return await rt.db.run_transaction(
        lambda conn: worker.rescue(conn, LeaderTerm(), 100, dead=[make.worker], lease=300)
    )


async def test_a_cancel_before_the_end_of_a_run_cancels_the_job(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection
) -> None:
    work = await make.running()
    async with first.doing(first.rt.job_control.cancel(work.number, make.owner)) as canceled:
        status = await first.then(rt.settlement.outcome(work, Done({"n": 1})), conn)
    assert canceled.result().requested
    assert status is Status.CANCELED
    (run,) = await rt.read_model.runs(work.number)
    assert (run.status, run.result) == (RunStatus.CANCELED, {"n": 1})


async def test_a_cancel_after_the_end_is_refused(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection
) -> None:
    work = await make.running()
    async with first.doing(first.rt.settlement.outcome(work, Done({"n": 1}))) as status:
        with pytest.raises(Refused, match="is already completed"):
            await first.then(rt.job_control.cancel(work.number, make.owner), conn)
    assert status.result() is Status.COMPLETED
    assert (await rt.read_model.job(work.number)).result == {"n": 1}


async def test_a_batch_of_results_skips_a_job_locked_by_a_cancel_and_settles_it_next(
    make: Factory, rt: Runtime, first: FirstSession
) -> None:
    work = await make.running()
    claim = rt.claim(make.worker, ())
    done = [(work.lease, {"n": 1})]
    async with first.doing(first.rt.job_control.cancel(work.number, make.owner)):
        async with asyncio.timeout(5):
            assert await claim.exchange(done, types=[], free=0, ahead=0) == []
    (settled,) = await claim.exchange(done, types=[], free=0, ahead=0)
    assert settled.status is Status.CANCELED


async def test_a_forced_cancel_ends_the_run_before_its_own_end(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection
) -> None:
    work = await make.running()
    forced = first.rt.job_control.cancel(work.number, make.owner, force=True)
    async with first.doing(forced):
        assert await first.then(rt.settlement.outcome(work, Done()), conn) is None
    assert (await rt.read_model.job(work.number)).status is Status.CANCELED


async def test_a_cancel_waits_for_the_question_and_closes_it(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection
) -> None:
    work = await make.running()
    async with first.doing(first.rt.asking.ask(work.lease, QUESTION)) as asked:
        canceled = await first.then(rt.job_control.cancel(work.number, make.owner), conn)
    assert asked.result() == f"{work.name}/1"
    assert canceled.status is Status.CANCELED
    assert await rt.questions.open() == []


async def test_a_question_waits_for_the_cancel_and_is_not_asked(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection
) -> None:
    work = await make.running()
    async with first.doing(first.rt.job_control.cancel(work.number, make.owner)):
        assert await first.then(rt.asking.ask(work.lease, QUESTION), conn) is None
    assert (await rt.read_model.job(work.number)).status is Status.CANCELED
    assert await rt.questions.of_job(work.number) == ([], [])


async def test_a_cancel_waits_for_the_claim_and_stops_the_run(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection
) -> None:
    number = await make.queued(queue="q")
    claim = first.rt.claim(make.worker, ("q",))
    taking = claim.exchange([], types=["noop"], free=1, ahead=0)
    async with first.doing(taking):
        canceled = await first.then(rt.job_control.cancel(number, make.owner), conn)
    assert canceled.requested
    assert (await rt.read_model.job(number)).status is Status.RUNNING


async def test_a_claim_skips_a_job_that_is_being_canceled(
    make: Factory, rt: Runtime, first: FirstSession
) -> None:
    number = await make.queued(queue="q")
    claim = rt.claim(make.worker, ("q",))
    async with first.doing(first.rt.job_control.cancel(number, make.owner)):
        async with asyncio.timeout(5):
            claimed = await claim.exchange([], types=["noop"], free=1, ahead=0)
    assert claimed == []


async def test_a_prefetched_job_that_is_being_canceled_does_not_start(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection
) -> None:
    work = await make.claimed()
    claim = rt.claim(make.worker, (work.queue,))
    async with first.doing(first.rt.job_control.cancel(work.number, make.owner)):
        assert await first.then(claim.start([work.lease]), conn) == []


@pytest.mark.parametrize("case", ["start", "give_back"])
async def test_a_claim_of_another_worker_is_not_started(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection, case: str
) -> None:
    """The job is claimed as before; only its lease differs."""
    work = await make.claimed()
    other = uuid4()

    async def lose(session: Connection) -> list[ClaimedJob]:
        await worker.rescue(session, LeaderTerm(), 100, dead=[make.worker], lease=300)
        return await claims.exchange(
            session, [], worker=other, queues=[work.queue], types=["noop"], free=0, ahead=1
        )

    claim = rt.claim(make.worker, ())
    late = (
        claim.start([work.lease])
        if case == "start"
        else claim.release_claims([work.lease], "stale")
    )
    async with first.doing(first.rt.db.run_transaction(lose)) as lost:
        assert not await first.then(late, conn)
    (new_claim,) = lost.result()
    job = await rt.read_model.job(work.number)
    assert (job.status, job.lease_token) == (Status.CLAIMED, new_claim.token)


async def test_a_result_during_the_rescue_waits_and_is_refused(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection
) -> None:
    work = await make.running(on_lost="resume")
    async with first.doing(_rescue(first.rt, make)) as rescued:
        assert await first.then(rt.settlement.outcome(work, Done()), conn) is None
    assert [job.number for job in rescued.result()] == [work.number]
    assert (await rt.read_model.job(work.number)).status is Status.RESUMED


async def test_a_rescue_skips_a_run_that_is_ending(
    make: Factory, rt: Runtime, first: FirstSession
) -> None:
    work = await make.running(on_lost="resume")
    async with first.doing(first.rt.settlement.outcome(work, Done())) as status:
        async with asyncio.timeout(5):
            assert await _rescue(rt, make) == []
    assert status.result() is Status.COMPLETED
    assert await _rescue(rt, make) == []
    assert (await rt.read_model.job(work.number)).status is Status.COMPLETED


async def test_a_heartbeat_during_the_rescue_reports_the_lost_run(
    make: Factory, rt: Runtime, first: FirstSession
) -> None:
    """It does not wait: the run is skipped, and the next heartbeat reports it."""
    work = await make.running(on_lost="resume")
    claim = rt.claim(make.worker, ())
    async with first.doing(_rescue(first.rt, make)):
        async with asyncio.timeout(5):
            await claim.heartbeat([work.lease], draining=False)
    _, (state,) = await claim.heartbeat([work.lease], draining=False)
    assert (state.owned, state.canceled) == (False, False)


async def test_a_rescue_waits_for_a_heartbeat_and_lets_the_run_live(
    make: Factory, rt: Runtime, first: FirstSession, clock: Clock, conn: Connection
) -> None:
    """The run was silent for too long; its heartbeat arrives just before the rescue."""
    work = await make.running(on_lost="resume")
    await clock.forward(400)
    await first.reopen()
    beat = first.rt.claim(make.worker, ()).heartbeat([work.lease], draining=False)
    async with first.doing(beat):
        assert await first.then(rt.dead_workers.rescue(LeaderTerm()), conn) == 0
    assert (await rt.read_model.job(work.number)).status is Status.RUNNING


ONCE = QuotaLimit(1)
Write = Callable[[Runtime, ClaimedJob], Awaitable[Any]]
WRITES: dict[str, Write] = {
    "checkpoint": lambda rt, work: rt.checkpoints.save(work.lease, {"stale": True}),
    "begin_step": lambda rt, work: rt.checkpoints.begin_step(work.lease, "stale"),
    "finish_step": lambda rt, work: rt.checkpoints.finish_step(work.lease, "mine", "stale"),
    "event": lambda rt, work: rt.checkpoints.event(work.lease, "stale", {}),
    "artifact": lambda rt, work: rt.checkpoints.artifact(work.lease, "stale", "file", b""),
    "log": lambda rt, work: rt.checkpoints.log(work.lease, 1, "stale"),
    "usage": lambda rt, work: rt.model_calls.record(work.lease, {"stale": 1}),
    "spend": lambda rt, work: rt.checkpoints.spend(work.lease, Quota.EVENTS, 1, ONCE),
    "ask": lambda rt, work: rt.asking.ask(work.lease, QUESTION),
}


@pytest.mark.parametrize("write", WRITES)
async def test_a_write_that_began_before_the_rescue_committed_is_refused_after_it(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection, write: str
) -> None:
    """A condition alone would still see the run as the owner: the lock makes it check again."""
    work = await make.running(on_lost="resume")
    await rt.checkpoints.begin_step(work.lease, "mine")
    async with first.doing(_rescue(first.rt, make)):
        with pytest.raises(LeaseLost):
            await first.then(WRITES[write](rt, work), conn)
    kinds = [event.kind for event in await rt.read_model.job_events(work.number)]
    assert kinds[-1] == "job_released"
    assert await rt.checkpoints.latest(work.number) == (None, None)
    assert await rt.checkpoints.logs(work.number) == []
    steps = await rt.checkpoints.steps(work.number)
    assert [(step.key, step.status) for step in steps] == [("mine", "pending")]


@pytest.mark.parametrize("write", sorted(WRITES.keys() - {"ask"}))
async def test_a_rescue_skips_a_job_during_a_write_until_the_next_sweep(
    make: Factory, rt: Runtime, first: FirstSession, write: str
) -> None:
    work = await make.running(on_lost="resume")
    await rt.checkpoints.begin_step(work.lease, "mine")
    async with first.doing(WRITES[write](first.rt, work)):
        async with asyncio.timeout(5):
            assert await _rescue(rt, make) == []
    assert [job.number for job in await _rescue(rt, make)] == [work.number]


async def test_concurrent_writes_do_not_exceed_a_quota(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection
) -> None:
    work = await make.running()
    async with first.doing(WRITES["spend"](first.rt, work)) as first_write:
        other = await first.then(WRITES["spend"](rt, work), conn)
    assert (first_write.result(), other) == (True, False)


async def test_a_finished_job_stays_finished_under_concurrent_changes(
    make: Factory, rt: Runtime, conn: Connection
) -> None:
    """All changes of a job are concurrent with its end; the end stays."""
    works = [await make.running() for _ in range(10)]
    for work in works:
        results = await asyncio.gather(
            rt.settlement.outcome(work, Done({"n": 1})),
            rt.settlement.failure(work, Failure("x", declared="PERMANENT")),
            rt.job_control.cancel(work.number, make.owner, force=True),
            rt.settlement.release_run(work, "shutdown"),
            _rescue(rt, make),
            rt.asking.ask(work.lease, QUESTION),
            return_exceptions=True,
        )
        unexpected = [result for result in results if isinstance(result, Exception)]
        assert all(isinstance(result, Refused | LeaseLost) for result in unexpected), unexpected
    for work in works:
        kinds = [event.to_status for event in await rt.read_model.job_events(work.number)]
        job = await rt.read_model.job(work.number)
        assert kinds[-1] == job.status
