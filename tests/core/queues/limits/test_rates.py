"""Rates: sliding windows and token buckets, and the leader's timer."""

from __future__ import annotations

from datetime import datetime

import pytest

from draftsman.database.database import Connection
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.support.limits import check_places, placed, set_limits
from tests.support.statements import rows, run, value

REQUEST = invocation(type="noop", queue="q")


async def _age(conn: Connection, seconds: float) -> None:
    """Move the starts of all buckets into the past."""
    await run(
        conn,
        "UPDATE draftsman.limit_buckets SET"
        " starts = ARRAY(SELECT s - make_interval(secs => %(s)s) FROM unnest(starts) s),"
        " tokens_at = tokens_at - make_interval(secs => %(s)s),"
        " next_at = next_at - make_interval(secs => %(s)s)",
        {"s": seconds},
    )


async def _due(rt: Runtime) -> float:
    due = await rt.sweeps.next_due()
    assert due is not None
    return due


async def test_a_window_never_has_more_starts_than_its_rate(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    await set_limits(rt, conn, queue={"q": {"rate": "2/1h"}})
    numbers = [await make.queued(queue="q") for _ in range(5)]
    assert await placed(conn) == numbers[:2]
    why = await rt.read_model.why(numbers[4])
    assert why.text.startswith("2 of 2 started in the last hour for queue q; next at ")
    steps = [(await rt.read_model.why(number)).next_step for number in numbers[2:]]
    then = "for all limits: draftsman limits"
    assert steps == [then, f"1 job is ahead of it; {then}", f"2 jobs are ahead of it; {then}"]
    assert 3590 < await _due(rt) <= 3600
    await _age(conn, 3500)
    assert await rt.sweeps.run("limits", LeaderTerm()) == 0
    await _age(conn, 101)
    assert await _due(rt) <= 0
    assert await rt.sweeps.run("limits", LeaderTerm()) == 2
    assert await placed(conn) == numbers[:4]
    await check_places(rt)


async def test_starts_leave_the_window_one_by_one(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    await set_limits(rt, conn, queue={"q": {"rate": "3/60s"}})
    numbers = []
    for _ in range(3):
        numbers.append(await make.queued(queue="q"))
        await _age(conn, 10)
    numbers.append(await make.queued(queue="q"))
    assert await placed(conn) == numbers[:3]
    assert 29 < await _due(rt) <= 30
    await _age(conn, 30)
    await rt.sweeps.run("limits", LeaderTerm())
    assert await placed(conn) == numbers
    assert await value(conn, "SELECT next_at FROM draftsman.limit_buckets") is None


async def test_a_large_window_is_counted_in_hundredths_and_never_exceeded(
    rt: Runtime, owner: Actor, conn: Connection
) -> None:
    await set_limits(rt, conn, queue={"q": {"rate": "150/100s"}})
    await rt.submissions.submit_many([REQUEST] * 200, owner)
    assert len(await placed(conn)) == 150
    await _age(conn, 99)
    await rt.sweeps.run("limits", LeaderTerm())
    assert len(await placed(conn)) == 150
    await _age(conn, 2)
    await rt.sweeps.run("limits", LeaderTerm())
    assert len(await placed(conn)) == 200
    ((starts,),) = await rows(conn, "SELECT starts FROM draftsman.limit_buckets")
    assert len(starts) == 1


async def test_a_token_bucket_allows_a_burst_and_then_its_rate(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    await set_limits(rt, conn, queue={"q": {"rate": "6/60s", "burst": 3}})
    numbers = [await make.queued(queue="q") for _ in range(6)]
    assert await placed(conn) == numbers[:3]
    why = await rt.read_model.why(numbers[5])
    assert why.text.startswith("the rate of 6/1m, burst 3 is used for queue q; next at ")
    assert 9 < await _due(rt) <= 10
    for count in (4, 5):
        await _age(conn, 10.5)
        await rt.sweeps.run("limits", LeaderTerm())
        assert await placed(conn) == numbers[:count]
    await _age(conn, 1000)
    await rt.sweeps.run("limits", LeaderTerm())
    assert await placed(conn) == numbers
    assert await value(conn, "SELECT tokens FROM draftsman.limit_buckets") == pytest.approx(2)


async def test_a_rate_and_places_hold_together(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection
) -> None:
    await set_limits(rt, conn, queue={"q": {"rate": "2/1h", "running": 1}})
    numbers = [await make.queued(queue="q") for _ in range(4)]
    assert await placed(conn) == numbers[:1]
    assert await rt.sweeps.next_due() is None  # the end of the first is not a matter of time
    await rt.job_control.cancel(numbers[0], owner)
    assert await placed(conn) == numbers[1:2]
    await rt.job_control.cancel(numbers[1], owner)
    assert await placed(conn) == []
    assert await _due(rt) > 3500
    await rt.job_control.cancel(numbers[2], owner)
    await rt.job_control.cancel(numbers[3], owner)
    assert await rt.sweeps.run("limits", LeaderTerm()) == 0


async def test_the_rate_of_a_key_limits_its_starts(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection
) -> None:
    await set_limits(rt, conn, concurrency_key={"deploy": {"rate": "1/1h"}})
    first, second = [await make.queued(queue="q", concurrency_key="deploy") for _ in range(2)]
    await rt.job_control.cancel(first, owner)
    assert await placed(conn) == []
    assert (await rt.read_model.why(second)).text.startswith("1 of 1 started in the last hour")
    ((at,),) = await rows(conn, "SELECT next_at FROM draftsman.limit_buckets")
    assert isinstance(at, datetime)
