"""A run that lost its lease writes nothing and does not affect the new owner."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable

import pytest

from draftsman.agent_runs.activity.activity import Activity, ActivityKind
from draftsman.agent_runs.activity.service import ActivityStream
from draftsman.costs.service import ModelCalls
from draftsman.database.database import Connection
from draftsman.deliveries.target import parse as parse_target
from draftsman.errors import Failure, LeaseLost
from draftsman.jobs.job import Status
from draftsman.jobs.runs.outcome import Cancel, Done, Snooze
from draftsman.jobs.runs.quota import Quota, QuotaLimit
from draftsman.jobs.runs.run import ClaimedJob, LeaderTerm, Lease, LeaseState
from draftsman.jobs.runs.service.checkpoints import Checkpoints
from draftsman.jobs.runs.service.settlement import Settlement
from draftsman.runtime import Runtime
from draftsman_testing.factories import QUESTION, Factory
from tests.support.cases import cases
from tests.support.races import FirstSession
from tests.support.statements import rows

Write = Callable[[Runtime, ClaimedJob], Awaitable[object]]
FENCED: dict[str, Write] = {
    "checkpoint": lambda rt, work: rt.checkpoints.save(work.lease, {"stale": True}),
    "bundle": lambda rt, work: rt.checkpoints.save(work.lease, {"stale": True}, b"stale"),
    "begin_step": lambda rt, work: rt.checkpoints.begin_step(work.lease, "stale"),
    "finish_step": lambda rt, work: rt.checkpoints.finish_step(work.lease, "mine", "stale"),
    "event": lambda rt, work: rt.checkpoints.event(work.lease, "stale", {}),
    "artifact": lambda rt, work: rt.checkpoints.artifact(work.lease, "stale", "file", b""),
    "log": lambda rt, work: rt.checkpoints.log(work.lease, 1, "stale"),
    "activity": lambda rt, work: rt.activity.append(
        work.lease, 1, [Activity(ActivityKind.MESSAGE, "stale")], QuotaLimit(9)
    ),
    "progress": lambda rt, work: rt.activity.show(work.lease, "stale", "stale"),
    "transcript": lambda rt, work: rt.activity.append_transcript(
        work.lease, 0, b"stale", size=5, sha256="stale", most=9
    ),
    "params": lambda rt, work: rt.checkpoints.describe(work.lease, {"stale": True}, 9),
    "pull_request": lambda rt, work: rt.checkpoints.pull_request(work.lease, "stale"),
    "agent": lambda rt, work: rt.checkpoints.assign_agent(work.lease, "stale"),
    "target": lambda rt, work: rt.outbox.add_target(work.lease, parse_target("log")),
    "usage": lambda rt, work: rt.model_calls.record(work.lease, {"stale": 1}),
    "spend": lambda rt, work: rt.checkpoints.spend(work.lease, Quota.EVENTS, 1, QuotaLimit(9)),
    "ask": lambda rt, work: rt.asking.ask(work.lease, QUESTION),
    "done": lambda rt, work: rt.settlement.outcome(work, Done({"stale": True})),
    "snooze": lambda rt, work: rt.settlement.outcome(work, Snooze(1)),
    "cancel": lambda rt, work: rt.settlement.outcome(work, Cancel("stale")),
    "failure": lambda rt, work: rt.settlement.failure(work, Failure("stale")),
    "hand_back": lambda rt, work: rt.settlement.release_run(work, "stale"),
    "canceled": lambda rt, work: rt.settlement.canceled(work),
    "exchange": lambda rt, work: rt.claim(work.id, ()).exchange(
        [(work.lease, {"stale": True})], types=[], free=0, ahead=0
    ),
    "start": lambda rt, work: rt.claim(work.id, ()).start([work.lease]),
    "give_back": lambda rt, work: rt.claim(work.id, ()).release_claims([work.lease], "stale"),
    "heartbeat": lambda rt, work: rt.claim(work.id, ()).heartbeat([work.lease], draining=False),
}
"""Every write of a run, as tried by a run that no longer owns its job."""
ELSEWHERE = {"log_parked", "raise_budget", "reserve", "result"}
"""Methods that take a lease and have tests of their own: of parked runs, budgets and results."""


@cases("service", [Checkpoints, ActivityStream, ModelCalls, Settlement])
def test_every_method_that_takes_a_lease_is_tried(service: type) -> None:
    tried = {name for write in FENCED.values() for name in write.__code__.co_names} | ELSEWHERE
    fenced = {
        name
        for name, method in inspect.getmembers(service, inspect.iscoroutinefunction)
        if not name.startswith("_")
        and {"Lease", "ClaimedJob"} & set(method.__annotations__.values())
    }
    assert fenced
    assert fenced <= tried


@cases("write", FENCED)
async def test_a_rescued_run_writes_nothing_after_the_next_claim(
    make: Factory, rt: Runtime, conn: Connection, write: str
) -> None:
    stale = await make.running(on_lost="resume")
    await rt.dead_workers.rescue(LeaderTerm(), [make.worker])
    current = await make.running(stale.number)
    await rt.checkpoints.begin_step(current.lease, "mine")
    before = await _all_rows(conn)
    try:
        answered = await FENCED[write](rt, stale)
    except LeaseLost:
        answered = None
    assert answered in (
        None,
        [],
        0,
        (False, [LeaseState(stale.token, owned=False, renewed=False, canceled=False)]),
    )
    assert await _all_rows(conn) == before
    assert await rt.settlement.outcome(current, Done()) is Status.COMPLETED


@cases("write", sorted(FENCED.keys() - {"canceled", "start", "give_back", "progress"}))
async def test_the_owner_of_the_lease_can_write(
    make: Factory, rt: Runtime, conn: Connection, write: str
) -> None:
    """Shows that the writes of the test above are valid."""
    work = await make.running(text="Fix the parser")  # only such a job gets an agent
    await rt.checkpoints.begin_step(work.lease, "mine")
    before = await _all_rows(conn)
    await FENCED[write](rt, work)
    assert await _all_rows(conn) != before


async def test_a_claim_that_has_not_started_writes_nothing(
    make: Factory, rt: Runtime, conn: Connection
) -> None:
    work = await make.claimed()
    before = await _all_rows(conn)
    for name in ("params", "pull_request", "agent"):
        with pytest.raises(LeaseLost):
            await FENCED[name](rt, work)
    assert await _all_rows(conn) == before


async def test_the_parameters_of_a_run_are_its_own_and_wait_for_its_lock(
    make: Factory, rt: Runtime, conn: Connection, first: FirstSession
) -> None:
    work = await make.running()
    other = await make.running()
    async with first.doing(first.rt.job_control.cancel(work.number, make.owner)):
        await first.then(rt.checkpoints.describe(work.lease, {"own": 1}, 3), conn)
    ((run,), (untouched,)) = [await rt.read_model.runs(job.number) for job in (work, other)]
    assert (run.params_snapshot["own"], run.exit_code) == (1, 3)
    assert (untouched.params_snapshot, untouched.exit_code) == ({}, None)


@pytest.mark.parametrize("canceled", [False, True])
async def test_a_batch_with_two_leases_of_a_job_stores_the_result_of_the_newer(
    make: Factory, rt: Runtime, canceled: bool
) -> None:
    """As after an outage: the worker has the unsettled result of a lost run, and a newer run."""
    stale = await make.running(on_lost="resume")
    await rt.dead_workers.rescue(LeaderTerm(), [make.worker])
    current = await make.running(stale.number)
    other = await make.running()
    if canceled:
        await rt.job_control.cancel(current.number, make.owner)
    claim = rt.claim(make.worker, ())
    done = [(work.lease, {"token": work.token}) for work in (stale, current, other)]
    settled = await claim.exchange(done, types=[], free=0, ahead=0)
    assert sorted(job.token for job in settled) == [current.token, other.token]
    first, second = await rt.read_model.runs(stale.number)
    job = await rt.read_model.job(stale.number)
    if canceled:
        assert (job.status, job.result) == (Status.CANCELED, None)
        assert (second.status, second.result) == ("canceled", {"token": current.token})
    else:
        assert (job.status, job.result) == (Status.COMPLETED, {"token": current.token})
        assert second.status == "completed"
    assert (first.status, first.result) == ("interrupted", None)
    assert (await rt.read_model.job(other.number)).result == {"token": other.token}
    assert not any((await rt.read_model.invariants()).values())


async def test_a_guessed_token_is_refused(make: Factory, rt: Runtime) -> None:
    work = await make.running()
    for token in (0, -1, work.token + 1, 2**62):
        with pytest.raises(LeaseLost):
            await rt.checkpoints.save(Lease(work.number, 1, token), {})


TABLES = [
    "jobs",
    "job_runs",
    "job_steps",
    "job_checkpoints",
    "job_events",
    "job_questions",
    "job_answers",
    "artifacts",
    "artifact_chunks",
    "run_log_chunks",
    "run_activity",
    "job_quotas",
    "job_targets",
]


async def _all_rows(conn: Connection) -> dict[str, object]:
    """Return every row of every table that a run may write."""
    return {
        table: await rows(conn, f"SELECT to_jsonb(t) FROM draftsman.{table} t ORDER BY t::text")
        for table in TABLES
    }
