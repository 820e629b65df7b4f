"""Concurrency keys: a single job of a key at a time, in queue order, until it ends."""

from __future__ import annotations

from typing import Any, Final

import pytest

from draftsman.database.database import Connection
from draftsman.jobs.job import Status
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.jobs.runs.outcome import Done
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.core.queues.test_queues import claim
from tests.support.statements import CHANGE, UNIQUE, refused, rows, run

KEY: Final[dict[str, Any]] = {"queue": "q", "concurrency_key": "deploy"}


async def holders(conn: Connection) -> list[int]:
    """Return the unfinished jobs that hold a concurrency key."""
    found = await rows(
        conn,
        "SELECT number FROM draftsman.job_states WHERE concurrency_key IS NOT NULL"
        " AND hold IS NULL AND finished_at IS NULL ORDER BY number",
    )
    return [number for (number,) in found]


async def test_the_jobs_of_a_key_run_one_after_the_other(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    numbers = [await make.queued(**KEY) for _ in range(3)]
    free = await make.queued(queue="q")
    other = await make.queued(queue="q", concurrency_key="build")
    works = await claim(conn, make)
    assert [work.number for work in works] == [numbers[0], free, other]
    assert await claim(conn, make) == []
    await rt.settlement.outcome(works[0], Done())
    (work,) = await claim(conn, make)
    assert work.number == numbers[1]
    await rt.job_control.cancel(numbers[2], make.owner)
    await rt.settlement.outcome(work, Done())
    assert await claim(conn, make) == []


async def test_a_batch_is_held_like_single_requests(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection
) -> None:
    keys = ("a", "b", None, "a", "b", "a")
    jobs = await rt.submissions.submit_many(
        [invocation(type="noop", queue="q", concurrency_key=key) for key in keys], owner
    )
    claimed = [work.number for work in await claim(conn, make)]
    assert claimed == [job.number for job in jobs[:3]]


@pytest.mark.parametrize("state", ["asked", "resumed", "retrying", "paused"])
async def test_a_job_keeps_its_key_until_it_ends(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection, state: str
) -> None:
    made = await getattr(make, state)(concurrency_key="deploy")
    number = made if isinstance(made, int) else made.number
    later = await make.queued(**KEY, priority=9)
    assert await holders(conn) == [number]
    assert await claim(conn, make) == []
    why = await rt.read_model.why(later)
    assert (why.reason, why.text) == ("key", f"D-{number} holds the concurrency key 'deploy'")
    assert why.next_step == f"for its state: draftsman why D-{number}"
    await rt.job_control.cancel(number, owner)
    assert [work.number for work in await claim(conn, make)] == [later]


@pytest.mark.parametrize("end", ["completed", "failed", "dead", "expired", "canceled"])
async def test_every_end_releases_the_next_job(
    make: Factory, rt: Runtime, conn: Connection, end: str
) -> None:
    ended = await make.job_in(
        {"dead": Status.DEAD_LETTER}.get(end) or Status(end), concurrency_key="deploy"
    )
    later = await make.queued(**KEY)
    assert ended
    assert [work.number for work in await claim(conn, make)] == [later]


async def test_a_higher_priority_goes_first_until_the_first_claim(
    make: Factory, conn: Connection
) -> None:
    first = await make.queued(**KEY)
    urgent = await make.queued(**KEY, priority=5)
    assert await holders(conn) == [urgent]
    assert [work.number for work in await claim(conn, make)] == [urgent]
    await make.queued(**KEY, priority=9)
    assert await holders(conn) == [urgent]
    assert first not in await holders(conn)


async def test_a_scheduled_job_takes_its_key_when_it_is_due(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    scheduled = await make.scheduled(**KEY)
    queued = await make.queued(**KEY)
    assert await holders(conn) == [queued]
    await run(
        conn, "UPDATE draftsman.job_states SET run_at = draftsman.now() WHERE run_at IS NOT NULL"
    )
    await rt.promotion.promote(LeaderTerm())
    assert await holders(conn) == [scheduled]  # it is older, so its position is before
    assert [work.number for work in await claim(conn, make)] == [scheduled]


async def test_a_retry_inherits_the_key(rt: Runtime, make: Factory, owner: Actor) -> None:
    failed = await make.failed(**KEY)
    holder = await make.queued(**KEY)
    new = await rt.job_control.retry(failed, owner)
    job = await rt.read_model.job(new.number)
    assert (job.concurrency_key, job.hold) == ("deploy", "key")
    assert (await rt.read_model.why(new.number)).text.startswith(f"D-{holder} holds")


async def test_the_lost_run_of_a_key_keeps_it_or_releases_the_next(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    kept = await make.running(**KEY, on_lost="resume")
    lost = await make.running(queue="q", concurrency_key="build", on_lost="fail")
    next_build = await make.queued(queue="q", concurrency_key="build")
    next_deploy = await make.queued(**KEY)
    await rt.dead_workers.rescue(LeaderTerm(), [make.worker])
    assert (await rt.read_model.job(lost.number)).status is Status.FAILED
    assert await holders(conn) == [kept.number, next_build]
    assert (await rt.read_model.why(next_deploy)).reason == "key"


async def test_a_key_has_a_single_holder_for_every_writer(make: Factory, conn: Connection) -> None:
    await make.queued(**KEY)
    later = await make.queued(**KEY)
    async with refused(UNIQUE, "job_states_key"):
        await run(conn, "UPDATE draftsman.job_states SET hold = NULL WHERE number = %s", (later,))
    async with refused(CHANGE, "immutable"):
        await run(
            conn,
            "UPDATE draftsman.job_states SET concurrency_key = 'x' WHERE number = %s",
            (later,),
        )


async def test_the_sweep_assigns_a_key_that_no_job_holds(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    number = await make.queued(**KEY)
    await run(conn, "UPDATE draftsman.job_states SET hold = 'key' WHERE number = %s", (number,))
    assert (await rt.read_model.why(number)).text == "the concurrency key 'deploy' is free"
    assert list(await rt.read_model.invariants()) != []
    broken = (await rt.read_model.invariants())["concurrency_key_is_held_once"]
    assert [job for job, _ in broken] == [number]
    assert await rt.sweeps.run("holds", LeaderTerm()) == 1
    assert [work.number for work in await claim(conn, make)] == [number]


async def test_a_key_is_held_over_queues_and_pauses(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection
) -> None:
    first = await make.queued(queue="q", type="report", concurrency_key="deploy")
    later = await make.queued(queue="other", concurrency_key="deploy")
    await rt.queues.pause("q", owner, "r", "report")
    assert await claim(conn, make, "q", "other") == []
    assert (await rt.read_model.why(first)).reason == "paused"
    assert (await rt.read_model.why(later)).text == f"D-{first} holds the concurrency key 'deploy'"
    listed = {summary.name: summary.held for summary in await rt.queues.all()}
    assert listed == {"q": 1, "other": 1}
    await rt.job_control.cancel(first, owner)
    assert [work.number for work in await claim(conn, make, "q", "other")] == [later]
