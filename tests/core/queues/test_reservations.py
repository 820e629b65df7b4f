"""Reservations of queues: claims, renewals, ends, refusals, and the reason of waiting jobs."""

from __future__ import annotations

import asyncio

import pytest

from draftsman.database.database import Connection
from draftsman.errors import Failure, NotPermitted, Refused, UsageError
from draftsman.jobs.job import Status
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.jobs.runs.outcome import Done, Snooze
from draftsman.jobs.runs.run import ClaimedJob, LeaderTerm
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.people import People
from tests.core.queues.test_queues import claim
from tests.support.limits import set_limits
from tests.support.statements import run, value

LEFT = (
    "SELECT extract(epoch FROM expires_at - draftsman.now())::int FROM draftsman.queue_reservations"
)


async def reserve(rt: Runtime, owner: Actor, seconds: float = 600, **fields: object) -> int:
    """Submit a job that reserves the queue `q`; return its number."""
    request = invocation(**{"type": "noop", "queue": "q"} | fields)
    job, reservation = await rt.reservations.submit(request, owner, seconds)
    assert reservation is not None
    assert (reservation.job, reservation.queue) == (job.number, "q")
    return job.number


async def claimed(conn: Connection, make: Factory, *queues: str) -> list[int]:
    """Claim jobs and return their numbers in the order of the claim."""
    return [job.number for job in await claim(conn, make, *queues)]


async def expire(conn: Connection) -> None:
    """Let the reservations expire."""
    await run(
        conn,
        "UPDATE draftsman.queue_reservations"
        " SET reserved_at = reserved_at - interval '1 day',"
        " expires_at = draftsman.now() - interval '1 s'",
    )


async def ends(rt: Runtime, job: int) -> list[object]:
    """Return the reasons of the ends of the reservation of a job."""
    events = await rt.read_model.job_events(job)
    return [e.payload["reason"] for e in events if e.kind == "reservation_ended"]


async def test_a_queue_is_free_at_the_very_end_of_its_reservation(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection
) -> None:
    job = await reserve(rt, owner)
    other = await make.queued(queue="q", priority=10)
    async with conn.transaction():
        await run(
            conn,
            "UPDATE draftsman.queue_reservations"
            " SET reserved_at = reserved_at - interval '1 h', expires_at = draftsman.now()",
        )
        assert await claimed(conn, make, "q") == [other, job]


async def test_only_the_reserving_job_is_claimed_from_its_queue(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection
) -> None:
    running = await make.running(queue="q")
    earlier = [await make.queued(queue="q", priority=9 - n) for n in range(3)]
    other = await make.queued(queue="other")
    job = await reserve(rt, owner, priority=-5)
    later = await make.queued(queue="q", priority=10)
    assert await claimed(conn, make, "other", "q") == [job, other]
    assert await claimed(conn, make, "q") == []
    assert await rt.settlement.outcome(running, Done()) is Status.COMPLETED
    assert await rt.queues.release_reservation("q", owner) == job
    assert await claimed(conn, make, "q") == [later, *earlier]


async def test_a_reserving_job_is_claimed_for_its_type_and_unless_it_is_locked(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection
) -> None:
    job = await reserve(rt, owner)
    assert await claim(conn, make, "q", types=("report",)) == []
    async with rt.db.transaction() as other:
        lock = "SELECT FROM draftsman.job_states WHERE number = %s FOR UPDATE"
        await other.execute(lock, (job,))
        async with asyncio.timeout(5):
            assert await claimed(conn, make, "q") == []
    assert await claimed(conn, make, "q") == [job]


async def test_a_reservation_ends_with_its_job(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection
) -> None:
    waiting = await make.queued(queue="q")
    job = await reserve(rt, owner)
    (work,) = await claim(conn, make)
    assert work.number == job
    await rt.settlement.outcome(work, Done())
    assert await ends(rt, job) == ["completed"]
    assert await claimed(conn, make) == [waiting]


async def test_a_job_that_waits_for_a_person_does_not_block_its_queue(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection
) -> None:
    waiting = await make.queued(queue="q")
    job = await reserve(rt, owner)
    await make.asked(number=job)
    assert await ends(rt, job) == ["waiting_for_input"]
    assert await claimed(conn, make) == [waiting]
    await make.answer(job, "red")
    assert await rt.reservations.all() == []


async def test_a_job_that_waits_for_its_time_does_not_block_its_queue(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection
) -> None:
    job = await reserve(rt, owner)
    await rt.settlement.outcome(await make.running(number=job), Snooze(3600))
    assert await ends(rt, job) == ["scheduled"]


async def test_a_job_that_is_retried_keeps_its_reservation(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection
) -> None:
    waiting = await make.queued(queue="q")
    job = await reserve(rt, owner)
    await rt.settlement.failure(await make.running(number=job), Failure("lost", origin="network"))
    assert (await rt.read_model.job(job)).status is Status.RETRYING
    assert await claimed(conn, make) == []
    await make.due(job)
    assert await claimed(conn, make) == [job]
    assert (await rt.read_model.why(waiting)).reason == "reserved"


async def test_a_job_of_a_lost_worker_keeps_its_reservation(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection
) -> None:
    await make.queued(queue="q")
    job = await reserve(rt, owner)
    await make.running(number=job)
    await rt.dead_workers.rescue(LeaderTerm(), [make.worker])
    assert [item.job for item in await rt.reservations.all()] == [job]
    await make.due(job)
    assert await claimed(conn, make) == [job]


async def test_a_job_that_is_retried_keeps_its_reservation_while_its_limits_have_places(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection
) -> None:
    await set_limits(rt, conn, type={"noop": {"running": 1}})
    job = await reserve(rt, owner, max_attempts=4)
    for _ in range(2):
        await make.running(number=job)
        await rt.dead_workers.rescue(LeaderTerm(), [make.worker])
        await make.due(job)
        assert [item.job for item in await rt.reservations.all()] == [job]
    await make.running(number=job)
    await rt.dead_workers.rescue(LeaderTerm(), [make.worker])
    await make.running(queue="other")  # it takes the only place
    await make.due(job)
    assert await ends(rt, job) == ["held"]


async def test_a_canceled_job_ends_its_reservation(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection
) -> None:
    waiting = await make.queued(queue="q")
    job = await reserve(rt, owner)
    await rt.job_control.cancel(job, owner)
    assert await ends(rt, job) == ["canceled"]
    assert await claimed(conn, make) == [waiting]


async def test_the_start_and_the_heartbeat_renew_a_reservation(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection
) -> None:
    job = await reserve(rt, owner, 600)
    await shorten(conn, 30)
    work = await make.running(number=job)
    assert await value(conn, LEFT) == 600
    await shorten(conn, 30)
    await beat(rt, make, work)
    assert await value(conn, LEFT) == 600


async def test_a_heartbeat_renews_no_other_and_waits_for_no_locked_reservation(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection
) -> None:
    work = await make.running(number=await reserve(rt, owner, 600))
    await shorten(conn, 30)
    await beat(rt, make, await make.running())
    assert await value(conn, LEFT) <= 30
    async with conn.transaction():
        await run(conn, "SELECT FROM draftsman.queue_reservations FOR NO KEY UPDATE")
        async with asyncio.timeout(5):
            await beat(rt, make, work)
    assert await value(conn, LEFT) <= 30
    await beat(rt, make, work)
    assert await value(conn, LEFT) == 600


async def test_a_heartbeat_does_not_renew_an_expired_reservation(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection
) -> None:
    waiting = await make.queued(queue="q")
    job = await reserve(rt, owner)
    work = await make.running(number=job)
    await expire(conn)
    await beat(rt, make, work)
    assert await rt.reservations.all() == []
    assert await claimed(conn, make) == [waiting]


async def test_the_sweep_deletes_expired_reservations(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection
) -> None:
    job = await reserve(rt, owner)
    assert await rt.sweeps.run("holds", LeaderTerm()) == 0
    due = await rt.sweeps.next_due()
    assert due is not None
    assert 0 < due <= 600
    await expire(conn)
    assert await rt.sweeps.run("holds", LeaderTerm()) == 1
    assert await ends(rt, job) == ["expired"]


async def test_a_second_reservation_is_refused_until_the_first_has_expired(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection
) -> None:
    first = await reserve(rt, owner)
    with pytest.raises(Refused, match=f"reserved by .* for D-{first} until .*; no job"):
        await reserve(rt, owner, key="again")
    assert (await rt.read_model.page(key="again")).jobs == []
    await expire(conn)
    second = await reserve(rt, owner, key="again")
    assert await ends(rt, first) == ["expired"]
    assert await claimed(conn, make) == [second]


async def test_a_repeated_request_keeps_its_reservation(rt: Runtime, owner: Actor) -> None:
    assert await reserve(rt, owner, key="k") == await reserve(rt, owner, key="k")


async def test_a_request_that_joins_a_job_reserves_nothing(
    rt: Runtime, make: Factory, owner: Actor
) -> None:
    live = await make.queued(queue="q", subject_key="s")
    request = invocation(type="noop", queue="q", subject_key="s")
    job, reservation = await rt.reservations.submit(request, owner)
    assert (job.number, job.outcome, reservation) == (live, "joined", None)


@pytest.mark.parametrize("type", [None, "noop"])
async def test_a_paused_queue_is_not_reserved(rt: Runtime, owner: Actor, type: str | None) -> None:
    await rt.queues.pause("q", owner, "disk is full", type)
    with pytest.raises(Refused, match=r"queue 'q' is paused by .*: disk is full; no job was"):
        await reserve(rt, owner, key="k")
    assert (await rt.read_model.page(key="k")).jobs == []


async def test_a_job_that_waits_for_its_concurrency_key_reserves_nothing(
    rt: Runtime, make: Factory, owner: Actor
) -> None:
    holder = await make.queued(queue="q", concurrency_key="db")
    with pytest.raises(Refused, match=f"D-{holder} holds the concurrency key 'db'; no job was"):
        await reserve(rt, owner, concurrency_key="db")


async def test_a_job_that_waits_for_other_jobs_reserves_nothing(
    rt: Runtime, make: Factory, owner: Actor
) -> None:
    parent = await make.queued(queue="q")
    with pytest.raises(Refused, match="a limit or another job would hold the job now; no job was"):
        await reserve(rt, owner, after=(parent,), key="k")
    assert (await rt.read_model.page(key="k")).jobs == []


async def test_a_reserving_job_keeps_its_concurrency_key(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection
) -> None:
    job = await reserve(rt, owner, concurrency_key="db")
    await make.queued(queue="q", concurrency_key="db", priority=5)
    assert await ends(rt, job) == []
    assert await claimed(conn, make) == [job]


async def test_a_job_of_a_paused_type_ends_its_reservation(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection
) -> None:
    await make.worker_row(queues=["q"], types=["noop", "report"])
    other = await make.queued(queue="q")
    job = await reserve(rt, owner, type="report")
    await rt.queues.pause("q", owner, "model is down", "report")
    assert await ends(rt, job) == ["held"]
    assert await claimed(conn, make) == [other]


@pytest.mark.parametrize(
    ("fields", "seconds", "problem"),
    [
        ({}, 59, "1m to 1d, not for 59s"),
        ({}, 86_401, "1m to 1d, not for 86401s"),
        ({"delay": 60}, 600, "starts later"),
        ({"subject_key": "s", "unique": {"debounce": 5}}, 600, "debounced"),
    ],
)
async def test_a_reservation_is_for_a_job_that_starts_now(
    rt: Runtime, owner: Actor, fields: dict[str, object], seconds: float, problem: str
) -> None:
    with pytest.raises(UsageError, match=problem):
        await reserve(rt, owner, seconds, **fields)


async def test_only_operators_reserve_and_release(
    rt: Runtime, make: Factory, owner: Actor, people: People
) -> None:
    request = invocation(type="noop", queue="q")
    with pytest.raises(NotPermitted, match="operator"):
        await rt.reservations.submit(request, people.anna)
    await reserve(rt, owner)
    with pytest.raises(NotPermitted, match="operator"):
        await rt.queues.release_reservation("q", people.anna)
    await rt.queues.release_reservation("q", people.olga)


async def test_a_queue_without_a_reservation_is_not_released(rt: Runtime, owner: Actor) -> None:
    with pytest.raises(Refused, match="the queue 'q' is not reserved"):
        await rt.queues.release_reservation("q", owner)


async def test_why_and_the_lists_show_the_reservation(
    rt: Runtime, make: Factory, owner: Actor
) -> None:
    await make.worker_row(queues=["q"], types=["noop"])
    waiting = [await make.queued(queue="q") for _ in range(2)]
    job = await reserve(rt, owner)
    why = await rt.read_model.why(waiting[0])
    assert why.reason == "reserved"
    assert why.text.startswith(f"the queue 'q' is reserved by {owner.id} for D-{job} until 20")
    assert f"draftsman why D-{job}" in why.next_step
    assert "draftsman queues release q" in why.next_step
    own = await rt.read_model.why(job)
    assert (own.reason, own.text.split(" until")[0]) == ("next", "the queue 'q' is reserved for it")
    (summary,) = [item for item in await rt.queues.all() if item.name == "q"]
    assert summary.reservation is not None
    assert (summary.queued, summary.held, summary.reservation.job) == (1, 2, job)
    assert [item.number for item in await rt.queues.order()] == [job]
    holds = {item.number: item.hold for item in await rt.read_model.jobs()}
    assert holds == {job: None, waiting[0]: "reserved", waiting[1]: "reserved"}
    await make.running(number=job)
    (summary,) = [item for item in await rt.queues.all() if item.name == "q"]
    assert (summary.queued, summary.held, summary.running) == (0, 2, 1)
    assert await rt.queues.order() == []


async def test_the_history_of_a_queue_has_its_reservations(rt: Runtime, owner: Actor) -> None:
    job = await reserve(rt, owner)
    await rt.queues.release_reservation("q", owner)
    changes = [(change.action, change.reason) for change in await rt.queues.changes("q")]
    assert changes == [("release", f"of D-{job}"), ("reserve", f"for D-{job}")]
    assert await ends(rt, job) == ["released"]


async def test_a_paused_queue_stays_paused_for_its_reservation(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection
) -> None:
    job = await reserve(rt, owner)
    await rt.queues.pause("q", owner, "r")
    assert await claimed(conn, make) == []
    assert (await rt.read_model.why(job)).reason == "paused"
    await rt.queues.resume("q", owner)
    assert await claimed(conn, make) == [job]


async def shorten(conn: Connection, seconds: float) -> None:
    """Let the reservations expire in so many seconds."""
    await run(
        conn,
        "UPDATE draftsman.queue_reservations SET reserved_at = draftsman.now() - interval '1 day',"
        f" expires_at = draftsman.now() + make_interval(secs => {seconds})",
    )


async def beat(rt: Runtime, make: Factory, work: ClaimedJob) -> None:
    """Send a heartbeat of a run."""
    await rt.claim(make.worker, ["q"]).heartbeat([work.lease], draining=False)


@pytest.mark.parametrize("end", ["release", "completion", "expiry"])
async def test_the_end_of_a_reservation_wakes_the_workers(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection, end: str
) -> None:
    work = await make.running(number=await reserve(rt, owner))
    async with rt.db.connection() as listening:
        await listening.execute("LISTEN draftsman_jobs")
        if end == "release":
            await rt.queues.release_reservation("q", owner)
        elif end == "completion":
            await rt.settlement.outcome(work, Done())
        else:
            await expire(conn)
            await rt.sweeps.run("holds", LeaderTerm())
        queues = [item.payload async for item in listening.notifies(timeout=10, stop_after=1)]
        await listening.execute("UNLISTEN *")
    assert queues == ["q"]
