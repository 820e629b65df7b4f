"""Queues: pause, resume and drain; the claims, and why a job waits."""

from __future__ import annotations

import pytest

from draftsman.database.database import Connection
from draftsman.entities.queues import blocks_text
from draftsman.errors import NotPermitted, Refused, UsageError
from draftsman.jobs.job import Source, Status
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.jobs.runs.outcome import Done
from draftsman.jobs.runs.run import ClaimedJob, LeaderTerm
from draftsman.jobs.runs.store.claim import exchange
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.people import People
from tests.support.statements import rows, run, value

HELD = "SELECT count(*) FROM draftsman.job_states WHERE hold = 'paused'"


async def claim(
    conn: Connection,
    make: Factory,
    *queues: str,
    free: int = 10,
    types: tuple[str, ...] = (),
    after: int | None = None,
) -> list[ClaimedJob]:
    """Claim jobs of these queues as a worker does."""
    return await exchange(
        conn,
        [],
        worker=make.worker,
        queues=list(queues or ("q",)),
        types=list(types or ("noop", "report")),
        free=free,
        ahead=0,
        after=after,
    )


async def test_a_paused_queue_holds_its_jobs_and_no_others(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection
) -> None:
    held = await make.queued(queue="q")
    free = await make.queued(queue="other")
    assert await rt.queues.pause("q", owner, "disk is full") == 0
    later = await make.queued(queue="q")
    assert [job.number for job in await claim(conn, make, "q", "other")] == [free]
    listed = {summary.name: summary for summary in await rt.queues.all()}
    assert (listed["q"].queued, listed["q"].held) == (0, 2)
    assert (listed["other"].running, listed["other"].pauses) == (1, ())
    assert [(p.type, p.reason) for p in listed["q"].pauses] == [(None, "disk is full")]
    assert {job.number: job.hold for job in await rt.read_model.jobs()} == {
        held: "paused",
        free: None,
        later: "paused",
    }
    await rt.queues.resume("q", owner)
    assert [job.number for job in await claim(conn, make)] == [held, later]


async def test_a_type_is_paused_in_its_queue_alone_also_beside_a_pause_of_another(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection
) -> None:
    await rt.queues.pause("other", owner, "model is down", "report")
    await rt.queues.pause("q", owner, "disk is full", "noop")
    report = await make.queued(queue="q", type="report")
    await make.queued(queue="q")
    assert [job.number for job in await claim(conn, make, "q", "other")] == [report]


async def test_a_job_with_a_pause_is_not_claimed_also_without_a_hold(
    make: Factory, conn: Connection
) -> None:
    paused, free = [await make.queued(queue="q") for _ in range(2)]
    pause = "INSERT INTO draftsman.job_pauses (job, reason, paused_by) VALUES (%s, 'wait', 'anna')"
    await run(conn, pause, (paused,))
    assert [job.number for job in await claim(conn, make)] == [free]


async def test_a_paused_type_lets_the_other_types_of_its_queue_pass(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection
) -> None:
    reports = [await make.queued(queue="q", type="report") for _ in range(3)]
    noop = await make.queued(queue="q")
    elsewhere = await make.queued(queue="other", type="report")
    assert await rt.queues.pause("q", owner, "model is down", "report") == 3
    later = await make.queued(queue="q", type="report")
    assert [job.number for job in await claim(conn, make, "q", "other")] == [noop, elsewhere]
    (summary,) = [item for item in await rt.queues.all() if item.name == "q"]
    assert (summary.queued, summary.held, summary.running) == (0, 4, 1)
    assert await value(conn, HELD) == 3
    assert await rt.sweeps.run("holds", LeaderTerm()) == 1
    assert await value(conn, HELD) == 4
    assert await rt.queues.resume("q", owner, "report") == 4
    assert await value(conn, HELD) == 0
    assert [job.number for job in await claim(conn, make)] == [*reports, later]


async def test_the_sweep_releases_what_an_interrupted_resume_left(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection
) -> None:
    number = await make.queued(queue="q", type="report")
    other = await make.queued(queue="q")
    await rt.queues.pause("q", owner, "r", "report")
    await rt.queues.pause("q", owner, "r", "noop")
    await run(conn, "DELETE FROM draftsman.queue_pauses WHERE type = 'report'")
    assert (await rt.read_model.why(number)).reason == "released"
    assert await rt.sweeps.run("holds", LeaderTerm()) == 1
    assert [job.number for job in await claim(conn, make)] == [number]
    assert (await rt.read_model.why(other)).reason == "paused"


async def test_jobs_that_become_ready_in_a_paused_queue_wait(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection
) -> None:
    resumed = await make.asked(queue="q")
    scheduled = await make.scheduled(queue="q")
    retrying = await make.retrying(queue="q")
    await rt.queues.pause("q", owner, "r")
    assert (await rt.read_model.why(scheduled)).text.startswith("due in")
    assert "is paused" in (await rt.read_model.why(scheduled)).next_step
    await make.answer(resumed.number, "red")
    await make.due(retrying)
    await run(
        conn, "UPDATE draftsman.job_states SET run_at = draftsman.now() WHERE run_at IS NOT NULL"
    )
    await rt.promotion.promote(LeaderTerm())
    assert await claim(conn, make) == []
    for number in (resumed.number, scheduled, retrying):
        assert (await rt.read_model.why(number)).reason == "paused"
    await rt.queues.resume("q", owner)
    assert {job.number for job in await claim(conn, make)} == {resumed.number, scheduled, retrying}


async def test_a_running_job_of_a_paused_queue_completes(
    rt: Runtime, make: Factory, owner: Actor
) -> None:
    work = await make.running(queue="q")
    await rt.queues.pause("q", owner, "r")
    assert await rt.settlement.outcome(work, Done()) is Status.COMPLETED


async def test_why_names_the_pause(rt: Runtime, make: Factory, owner: Actor) -> None:
    number = await make.queued(queue="q", type="report")
    await rt.queues.pause("q", owner, "model is down", "report")
    why = await rt.read_model.why(number)
    assert why.text.startswith("the type 'report' in the queue 'q' is paused since 20")
    assert why.text.endswith(f"by {owner.id}: model is down")
    assert why.next_step == "to resume it: draftsman queues resume q --type report"
    await rt.queues.pause("q", owner, "disk is full")
    why = await rt.read_model.why(number)
    assert why.text.endswith("disk is full")
    assert why.next_step == "to resume it: draftsman queues resume q"


async def test_a_held_job_can_be_canceled(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection
) -> None:
    number = await make.queued(queue="q", type="report")
    await rt.queues.pause("q", owner, "r", "report")
    await rt.job_control.cancel(number, owner)
    assert (await rt.read_model.job(number)).status is Status.CANCELED
    assert await value(conn, HELD) == 0


async def test_a_second_pause_or_resume_is_refused_with_the_facts(
    rt: Runtime, owner: Actor
) -> None:
    await rt.queues.pause("q", owner, "disk is full")
    with pytest.raises(Refused, match=f"already paused by {owner.id}: disk is full"):
        await rt.queues.pause("q", owner, "again")
    with pytest.raises(
        Refused, match="the type 'noop' in the queue 'q' is not paused; paused: the"
    ):
        await rt.queues.resume("q", owner, "noop")
    await rt.queues.resume("q", owner)
    with pytest.raises(Refused, match="the queue 'q' is not paused; see: draftsman queues list"):
        await rt.queues.resume("q", owner)
    changes = await rt.queues.changes("q")
    assert [(change.action, change.reason) for change in changes] == [
        ("resume", None),
        ("pause", "disk is full"),
    ]


@pytest.mark.parametrize(
    ("queue", "type", "reason"), [("", None, "r"), ("q", " ", "r"), ("q", None, " ")]
)
async def test_a_pause_needs_names_and_a_reason(
    rt: Runtime, owner: Actor, queue: str, type: str | None, reason: str
) -> None:
    with pytest.raises(UsageError):
        await rt.queues.pause(queue, owner, reason, type)


async def test_only_operators_pause_and_resume(rt: Runtime, people: People) -> None:
    anna = people.on(Source.CLI, "anna")
    olga = people.on(Source.CLI, "olga")
    with pytest.raises(NotPermitted, match="may not pause or resume queues"):
        await rt.queues.pause("q", anna, "r")
    await rt.queues.pause("q", olga, "r")
    with pytest.raises(NotPermitted, match="may not pause or resume queues"):
        await rt.queues.resume("q", anna)


async def test_a_drain_waits_for_the_running_jobs_of_the_queue(
    rt: Runtime, make: Factory, owner: Actor
) -> None:
    work = await make.running(queue="q")
    other = await make.running(queue="other")
    waiting = await make.queued(queue="q")
    seen = []
    async for progress in rt.queues.drain("q", owner, "upgrade"):
        seen.append(progress.running)
        if progress.running:
            await rt.settlement.outcome(work, Done())
    assert seen == [[work.number], []]
    assert (await rt.read_model.why(waiting)).reason == "paused"
    assert (await rt.read_model.job(other.number)).status is Status.RUNNING
    async for progress in rt.queues.drain("q", owner, "again"):
        assert progress.finished


async def test_the_claim_passes_no_held_job(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection
) -> None:
    await rt.submissions.submit_many(
        [invocation(type=type, queue="q") for type in ("report",) * 50 + ("noop",)], owner
    )
    await rt.queues.pause("q", owner, "r", "report")
    plan = "\n".join(
        line
        for (line,) in await rows(
            conn,
            "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) SELECT number FROM draftsman.claimable"
            " WHERE queue = 'q' AND NOT by_type ORDER BY priority DESC, position, number LIMIT 1",
        )
    )
    assert "Rows Removed by Filter" not in plan


async def test_a_queue_names_what_its_held_jobs_wait_for(make: Factory, rt: Runtime) -> None:
    first, *_ = [await make.queued(queue="pay", concurrency_key="deploy") for _ in range(3)]
    await make.queued(queue="pay", after=[f"D-{first}"])
    (queue,) = await rt.queues.all()
    assert (queue.queued, queue.held) == (1, 3)
    assert (queue.limited, queue.keyed, queue.dependent) == (0, 2, 1)
    assert blocks_text(queue) == "2 wait for a concurrency key; 1 waits for parents"
