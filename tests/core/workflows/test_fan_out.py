"""Jobs that a handler spawns and gathers, without a slot meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

from draftsman.database.database import Connection
from draftsman.errors import Failure, LeaseLost, NotFound, UsageError
from draftsman.handlers.context import RunContext
from draftsman.jobs.job import Status
from draftsman.jobs.runs.outcome import Done, Outcome
from draftsman.jobs.runs.run import ClaimedJob, RunStatus
from draftsman.jobs.runs.store.run_state import RunEnd, settle
from draftsman.repos.repo_catalog import Repo
from draftsman.repos.repo_profile import RepoProfile
from draftsman.runtime import Runtime
from draftsman.workflows import store as workflows
from draftsman_testing.factories import Factory
from draftsman_testing.waits import until
from tests.core.worker.workers import running_worker, runtime_with
from tests.support.cases import cases
from tests.support.races import FirstSession
from tests.support.statements import rows

PAY = Repo(None, "github.com", "acme", "pay", "https://github.com/acme/pay.git")


async def spawned(rt: Runtime, work: ClaimedJob, *keys: str) -> list[int]:
    """Spawn jobs of these keys."""
    return [await rt.workflows.spawn(work, key, "noop", {"queue": "q"}) for key in keys]


async def end(rt: Runtime, make: Factory, number: int) -> None:
    """Run a job to completion."""
    await rt.settlement.outcome(await make.running(number), Done({"n": number}))


async def test_a_job_is_spawned_once_for_a_key(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    work = await make.running()
    one, two = await spawned(rt, work, "a", "b")
    assert await spawned(rt, work, "a", "b") == [one, two]
    job = await rt.read_model.job(one)
    assert (job.invoker_id, job.source) == (work.invoker_id, "internal")
    assert await rows(conn, "SELECT count(*) FROM draftsman.job_requests") == [(3,)]
    texts = r'another request: noop \{\}, now noop \{"n": 1\}; use a new key, or .*ctx.now'
    with pytest.raises(UsageError, match=texts):
        await rt.workflows.spawn(work, "a", "noop", {"payload": {"n": 1}})
    with pytest.raises(UsageError, match=rf"made D-{one} of another request: noop .*, now other"):
        await rt.workflows.spawn(work, "a", "other", {"queue": "q"})
    with pytest.raises(UsageError, match=r"spawn.. does not take 'notify'; allowed: payload"):
        await rt.workflows.spawn(work, "c", "noop", {"notify": ["log"]})
    await make.queued(after=(await make.queued(after=(work.number,)),))
    assert await rt.workflows.waiting_count(work.number) == 2
    tree = await rt.workflows.tree(work.number)
    assert [(item.number, item.parents) for item in tree.jobs[1:3]] == [
        (one, [work.number]),
        (two, [work.number]),
    ]


@cases("source", ["pay", "acme/pay", PAY.remote_url, "git@github.com:acme/pay.git"])
async def test_a_spawned_job_has_the_registered_name_of_its_repository(
    rt: Runtime, make: Factory, source: str
) -> None:
    if not (await rt.repos.catalog()).repos:
        await rt.repos.add(PAY, RepoProfile(), make.owner)
    work = await make.running()
    job = await rt.read_model.job(await rt.workflows.spawn(work, "a", "noop", {"repo": source}))
    assert (job.agent_request.repo_owner, job.agent_request.repo_name) == ("acme", "pay")


async def test_a_repository_that_is_unknown_is_refused(rt: Runtime, make: Factory) -> None:
    with pytest.raises(NotFound, match="pya"):
        await rt.workflows.spawn(await make.running(), "a", "noop", {"repo": "pya"})


async def test_a_lost_run_spawns_and_gathers_nothing(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    work = await make.running()
    jobs = await spawned(rt, work, "a")
    await rt.settlement.release_run(work, "shutdown")
    with pytest.raises(LeaseLost):
        await spawned(rt, work, "b")
    with pytest.raises(LeaseLost):
        await rt.workflows.gather(work, jobs)
    assert await rows(conn, "SELECT count(*) FROM draftsman.job_requests") == [(2,)]


async def test_a_job_parks_until_all_spawned_jobs_have_ended(rt: Runtime, make: Factory) -> None:
    work = await make.running(queue="r", concurrency_key="k")
    one, two = await spawned(rt, work, "a", "b")
    assert await rt.workflows.gather(work, [two, one]) is None
    other = await make.queued(queue="r", concurrency_key="k")
    why = await rt.read_model.why(work.number)
    assert (why.reason, why.text) == ("parents", f"waits for D-{one} (queued), D-{two} (queued)")
    await end(rt, make, one)
    assert (await rt.read_model.job(work.number)).status is Status.SCHEDULED
    await end(rt, make, two)
    assert (await rt.read_model.job(work.number)).status is Status.RESUMED
    assert (await rt.read_model.why(other)).reason == "key"
    again = await make.running(work.number)
    ended = await rt.workflows.gather(again, [two, one])
    assert ended is not None
    assert [(item.number, item.result) for item in ended] == [(two, {"n": two}), (one, {"n": one})]
    assert not any((await rt.read_model.invariants()).values())


async def test_other_jobs_and_the_own_key_are_refused(rt: Runtime, make: Factory) -> None:
    work = await make.running(concurrency_key="k")
    refused = f"would wait for {work.name}, which has the concurrency key 'k' and waits for it"
    with pytest.raises(UsageError, match=refused):
        await rt.workflows.spawn(work, "a", "noop", {"concurrency_key": "k"})
    (job,) = await spawned(rt, work, "a")
    below = await make.running(job)
    with pytest.raises(UsageError, match=refused):
        await rt.workflows.spawn(below, "a", "noop", {"concurrency_key": "k"})
    assert await rt.workflows.spawn(below, "a", "noop", {"concurrency_key": "other"})
    with pytest.raises(UsageError, match="was not spawned by this job"):
        await rt.workflows.ended(work, [job, await make.queued()])


async def test_jobs_that_would_wait_for_each_other_through_their_keys_are_refused(
    rt: Runtime, make: Factory
) -> None:
    one = await make.running(concurrency_key="a")
    two = await make.running(concurrency_key="b")
    below = await rt.workflows.spawn(one, "b", "noop", {"concurrency_key": "b"})
    other = await rt.workflows.spawn(two, "a", "noop", {"concurrency_key": "a", "delay": 1})
    assert await rt.workflows.gather(one, [below]) is None
    with pytest.raises(Failure) as raised:
        await rt.workflows.gather(two, [other])
    assert raised.value.code == "wait_cycle"
    assert str(raised.value) == (
        f"{two.name} would wait for itself: it waits for D-{other}, which waits for the"
        f" concurrency key 'a' of {one.name}, which waits for D-{below}, which waits for the"
        f" concurrency key 'b' of {two.name}"
    )
    assert (await rt.read_model.job(two.number)).status is Status.RUNNING
    await rt.settlement.failure(two, raised.value)
    await end(rt, make, below)
    assert (await rt.read_model.job(one.number)).status is Status.RESUMED


async def test_why_names_a_cycle_that_no_gather_has_seen(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    one = await make.running(concurrency_key="a")
    two = await make.running(concurrency_key="b")
    below = await rt.workflows.spawn(one, "b", "noop", {"concurrency_key": "b"})
    other = await rt.workflows.spawn(two, "a", "noop", {"concurrency_key": "a"})
    for work, job in ((one, below), (two, other)):
        assert await workflows.await_jobs(conn, work.lease, [job]) == 1
        assert await settle(conn, work.lease, RunEnd(Status.SCHEDULED, RunStatus.PARKED, delay=60))
    why = await rt.read_model.why(other)
    assert (why.reason, why.next_step) == ("cycle", f"to end it: draftsman cancel {two.name}")
    assert why.text == (
        f"waits for itself: for the concurrency key 'a' of {one.name}, which waits for D-{below},"
        f" which waits for the concurrency key 'b' of {two.name}, which waits for D-{other}"
    )
    assert (await rt.read_model.why(one.number)).reason == "cycle"


async def test_of_two_jobs_that_begin_to_wait_for_each_other_at_once_the_second_is_refused(
    rt: Runtime, first: FirstSession, make: Factory, conn: Connection
) -> None:
    one = await make.running(concurrency_key="a")
    two = await make.running(concurrency_key="b")
    below = await rt.workflows.spawn(one, "b", "noop", {"concurrency_key": "b"})
    other = await rt.workflows.spawn(two, "a", "noop", {"concurrency_key": "a"})
    async with first.doing(first.rt.workflows.gather(one, [below])) as parked:
        with pytest.raises(Failure, match="would wait for itself"):
            await first.then(rt.workflows.gather(two, [other]), conn)
    assert parked.result() is None


async def test_a_spawned_job_spawns_and_gathers_too(rt: Runtime, make: Factory) -> None:
    work = await make.running()
    (job,) = await spawned(rt, work, "a")
    below = await make.running(job)
    (inner,) = await spawned(rt, below, "a")
    assert await rt.workflows.gather(below, [inner]) is None
    assert await rt.workflows.gather(work, [job]) is None
    await end(rt, make, inner)
    assert (await rt.read_model.job(work.number)).status is Status.SCHEDULED
    await end(rt, make, job)
    assert (await rt.read_model.job(work.number)).status is Status.RESUMED


async def test_a_retry_takes_over_the_completed_jobs(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    work = await make.running()
    one, two = await spawned(rt, work, "a", "b")
    await end(rt, make, one)
    await rt.settlement.failure(await make.running(two), Failure("no", declared="PERMANENT"))
    ended = await rt.workflows.gather(work, [one, two])
    assert ended is not None
    await rt.settlement.failure(work, Failure("no", declared="PERMANENT"))
    numbers = [work.number]
    for _ in range(2):
        again = await make.running((await rt.job_control.retry(numbers[-1], make.owner)).number)
        numbers.append(again.number)
        assert again.retry_of == numbers[-2]
        other = await rt.workflows.spawn(again, "a", "noop", {"queue": "r", "payload": {"n": 1}})
        assert other not in (one, two), "another request under the same key is another job"
        await rt.settlement.failure(again, Failure("no", declared="PERMANENT"))
    again = await make.running((await rt.job_control.retry(numbers[-1], make.owner)).number)
    first, second = await spawned(rt, again, "a", "b")
    assert (first, second > again.number) == (one, True)
    assert await spawned(rt, again, "a", "b") == [first, second]
    assert await rt.workflows.gather(again, [first, second]) is None
    await end(rt, make, second)
    assert (await rt.read_model.job(again.number)).status is Status.RESUMED
    ended = await rt.workflows.gather(await make.running(again.number), [first, second])
    assert [item.result for item in ended or ()] == [{"n": one}, {"n": second}]
    assert (await rt.workflows.tree(one)).spawned_by == work.number
    tree = await rt.workflows.tree(again.number)
    assert [(item.number, item.parents) for item in tree.jobs] == [
        (again.number, []),
        (one, [again.number]),
        (second, [again.number]),
    ]
    assert not any((await rt.read_model.invariants()).values())


async def test_a_cancel_of_the_tree_ends_the_spawned_jobs(rt: Runtime, make: Factory) -> None:
    work = await make.running()
    jobs = await spawned(rt, work, "a", "b")
    assert await rt.workflows.gather(work, jobs) is None
    canceled = await rt.job_control.cancel_tree(work.number, make.owner)
    assert [item.number for item in canceled] == [work.number, *jobs]
    assert (await rt.read_model.job(work.number)).status is Status.CANCELED


async def test_the_end_of_the_last_job_waits_for_the_park_and_wakes_it(
    rt: Runtime, first: FirstSession, make: Factory, conn: Connection
) -> None:
    work = await make.running()
    (job,) = await spawned(rt, work, "a")
    child = await make.running(job)
    async with first.doing(first.rt.workflows.gather(work, [job])) as parked:
        await first.then(rt.settlement.outcome(child, Done()), conn)
    assert parked.result() is None
    assert (await rt.read_model.job(work.number)).status is Status.RESUMED


async def test_a_gather_waits_for_the_end_of_the_last_job_and_does_not_park(
    rt: Runtime, first: FirstSession, make: Factory, conn: Connection
) -> None:
    work = await make.running()
    (job,) = await spawned(rt, work, "a")
    child = await make.running(job)
    async with first.doing(first.rt.settlement.outcome(child, Done())):
        ended = await first.then(rt.workflows.gather(work, [job]), conn)
    assert ended is not None
    assert ended[0].status is Status.COMPLETED
    assert (await rt.read_model.job(work.number)).status is Status.RUNNING


@pytest.mark.parametrize("on_failure", ["raise", "return"])
async def test_a_handler_fans_out_with_a_single_slot(
    rt: Runtime, make: Factory, on_failure: Any
) -> None:
    async def part(ctx: RunContext) -> Outcome:
        if ctx.job.payload["n"] == 1:
            raise Failure("broken", declared="PERMANENT")
        return Done({"square": ctx.job.payload["n"] ** 2})

    async def whole(ctx: RunContext) -> Outcome:
        jobs = [await ctx.spawn(f"part {n}", "part", payload={"n": n}, queue="q") for n in range(3)]
        ended = await ctx.gather(jobs, on_failure=on_failure)
        return Done({"squares": [(item.result or {}).get("square") for item in ended]})

    number = await make.queued(type="whole", queue="q")
    handlers = {"part": part, "whole": whole}
    async with running_worker(runtime_with(rt), handlers, slots=1, queues=("q",)):

        async def ended() -> bool:
            return (await rt.read_model.job(number)).finished_at is not None

        await until(ended, "the end of the whole")
    job = await rt.read_model.job(number)
    assert job.run_count == 2
    if on_failure == "return":
        assert job.result == {"squares": [0, None, 4]}
    else:
        assert (job.status, job.retry_count) == (Status.FAILED, 0)
        assert "is failed: broken" in (job.last_error or "")
