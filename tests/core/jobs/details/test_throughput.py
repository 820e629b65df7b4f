"""Throughput, waiting and run times of the jobs that finished in a period."""

from __future__ import annotations

import math
from collections.abc import Iterable

import pytest

from draftsman.errors import Failure
from draftsman.jobs.details import store
from draftsman.jobs.details.throughput import BARS, Period, Throughput
from draftsman.jobs.runs.outcome import Done
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.support.clock import Clock

pytestmark = pytest.mark.machine_clock("events have the time of the server")

START = (0, 0, 0)
"""Cursor before all events."""


def _by_name(rows: Iterable[Throughput]) -> dict[str, Throughput]:
    return {f"{row.by}:{row.value}": row for row in rows}


async def test_waiting_and_run_times_are_those_of_finished_jobs(
    make: Factory, rt: Runtime, clock: Clock
) -> None:
    for waited, ran, fails in ((10, 20, False), (30, 60, True)):
        number = await make.queued(queue="work", repo="https://git.example/acme/Pay")
        await clock.forward(waited)
        work = await make.running(number)
        await clock.forward(ran)
        if fails:
            await rt.settlement.failure(work, Failure("no", declared="PERMANENT"))
        else:
            await rt.settlement.outcome(work, Done())
    unclaimed = await make.resumed(queue="other")
    await rt.job_control.cancel(unclaimed, make.owner)
    await make.running(queue="other")
    rows = _by_name(await rt.throughput.read(Period.HOUR))
    names = ["all:", "queue:work", "queue:other", "type:noop", "repo:git.example/acme/pay"]
    assert list(rows) == names
    assert (rows["all:"].finished, rows["all:"].failed) == (3, 1)
    assert (rows["queue:other"].finished, rows["queue:other"].wait_p50) == (1, None)
    pay = rows["repo:git.example/acme/pay"]
    assert (pay.finished, pay.failed, pay.per_hour) == (2, 1, 2)
    assert pay.wait_p50 == pytest.approx(20, abs=5)
    assert pay.wait_p95 == pytest.approx(29, abs=5)
    assert pay.run_p50 == pytest.approx(40, abs=5)
    assert pay.run_p95 == pytest.approx(58, abs=5)
    assert (len(pay.bars), sum(filter(None, pay.bars)), pay.bars[-1]) == (BARS, 2, 2)


async def test_a_job_is_in_the_periods_since_its_end(
    make: Factory, rt: Runtime, clock: Clock
) -> None:
    work = await make.running()
    await clock.forward(8 * 86_400)
    await rt.settlement.outcome(work, Done())
    seen = []
    for passed in (0, 2 * 3600, 2 * 86_400, 7 * 86_400):
        await clock.forward(passed)
        rows = [(await rt.throughput.read(period))[0] for period in Period]
        seen.append([row.finished for row in rows])
        assert [sum(filter(None, row.bars)) for row in rows] == seen[-1]
    assert seen == [[1, 1, 1], [0, 1, 1], [0, 0, 1], [0, 0, 0]]


async def test_only_the_newest_events_of_a_period_are_read(
    make: Factory, rt: Runtime, clock: Clock
) -> None:
    for _ in range(3):
        await make.completed(queue="work")
        await clock.forward(600)
    async with rt.db.connection() as conn:
        whole = (await store.throughput(conn, Period.HOUR, START, 1000, 20))[0]
        cut = (await store.throughput(conn, Period.HOUR, START, 4, 20))[0]
    assert (whole.finished, whole.covered, whole.bars.count(None)) == (3, 3600, 0)
    assert cut.finished < 3
    assert cut.covered == pytest.approx(600 * cut.finished, abs=60)
    assert cut.bars.count(None) == BARS - math.ceil(BARS * cut.covered / 3600)
    assert sum(filter(None, cut.bars)) == cut.finished
    assert cut.per_hour == pytest.approx(6, abs=1)


async def test_of_many_groups_those_with_the_most_jobs_are_returned(
    make: Factory, rt: Runtime
) -> None:
    for queue in ("rare", "busy", "busy"):
        await make.completed(queue=queue)
    async with rt.db.connection() as conn:
        rows = _by_name(await store.throughput(conn, Period.DAY, START, 1000, 1))
    assert list(rows) == ["all:", "queue:busy", "type:noop"]
