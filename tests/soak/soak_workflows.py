"""Workflows of ten thousand jobs: a chain, a fan with a collector, and layers, with times."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest

from draftsman.database.database import Connection, Database
from draftsman.errors import Failure
from draftsman.jobs.job import Status
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.jobs.runs.outcome import Done
from draftsman.jobs.runs.run import ClaimedJob, LeaderTerm
from draftsman.jobs.runs.store.claim import exchange
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.support.clock import Clock
from tests.support.statements import rows

JOBS: Final = 10_000
SLOTS: Final = 100
LIMIT: Final = 240.0
"""Seconds for a step: linear costs take a third of it, quadratic costs many times."""
LAYER: Final = 100


def chain() -> list[dict[str, Any]]:
    """Return requests that each wait for the one before."""
    return [{"name": f"s{n}", "after": [f"s{n - 1}"] if n else []} for n in range(JOBS)]


def fan() -> list[dict[str, Any]]:
    """Return a root, jobs that wait for it, and a collector that waits for all of them."""
    middle = [f"s{n}" for n in range(1, JOBS - 1)]
    return [
        {"name": "s0"},
        *({"name": name, "after": ["s0"]} for name in middle),
        {"after": middle},
    ]


def layers() -> list[dict[str, Any]]:
    """Return layers of which each job waits for five jobs of the layer before."""
    requests: list[dict[str, Any]] = []
    for n in range(JOBS):
        above = n // LAYER - 1
        after = [f"s{above * LAYER + (n + k * 7) % LAYER}" for k in range(5)]
        requests.append({"name": f"s{n}", "after": after if above >= 0 else []})
    return requests


SHAPES: Final = {"chain": chain, "fan": fan, "layers": layers}


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Print and limit the time of a block."""
    began = time.monotonic()
    yield
    seconds = time.monotonic() - began
    sys.stdout.write(f"{what}: {seconds:.2f} s\n")
    assert seconds < LIMIT


async def submit(rt: Runtime, owner: Actor, shape: str) -> list[int]:
    """Submit a workflow; return its jobs."""
    requests = [invocation(type="noop", queue="q", **fields) for fields in SHAPES[shape]()]
    with timed(f"{shape}: submit"):
        jobs = await rt.submissions.submit_many(requests, owner)
    return [job.number for job in jobs]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("shape", SHAPES)
async def test_ten_thousand_jobs_run_after_their_parents(
    db: Database, rt: Runtime, make: Factory, owner: Actor, shape: str
) -> None:
    numbers = await submit(rt, owner, shape)
    order: list[int] = []
    async with db.dedicated_session().connection(5) as conn:
        with timed(f"{shape}: drain"):
            done = await _exchange(conn, make, [])
            while done:
                order += [job.number for job in done]
                settled = await _exchange(conn, make, done)  # its claim does not see their children
                done = settled or await _exchange(conn, make, [])
    assert sorted(order) == sorted(numbers)
    assert not any((await rt.read_model.invariants()).values())


@pytest.mark.parametrize("shape", SHAPES)
async def test_a_failure_cancels_ten_thousand_jobs(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection, shape: str
) -> None:
    numbers = await submit(rt, owner, shape)
    (work, *_) = await _exchange(conn, make, [], free=1)
    assert work.number == numbers[0]
    with timed(f"{shape}: the first job fails"):
        await rt.settlement.failure(work, Failure("broken", declared="PERMANENT"))
    await _postponed(rt)
    counts = dict(
        await rows(conn, "SELECT status::text, count(*) FROM draftsman.job_states GROUP BY 1")
    )
    assert counts["canceled"] == (JOBS - 1 if shape != "layers" else counts["canceled"])
    assert counts["canceled"] > JOBS / 2
    with timed(f"{shape}: invariants"):
        assert not any((await rt.read_model.invariants()).values())


@pytest.mark.parametrize("shape", SHAPES)
async def test_a_tree_of_ten_thousand_jobs_is_read_and_canceled(
    rt: Runtime, owner: Actor, shape: str
) -> None:
    numbers = await submit(rt, owner, shape)
    with timed(f"{shape}: read the tree"):
        tree = await rt.workflows.tree(numbers[0])
    assert len(tree.jobs) == 1000
    with timed(f"{shape}: cancel the tree"):
        canceled = await rt.job_control.cancel_tree(numbers[0], owner)
    assert len(canceled) == tree.total
    await _postponed(rt)
    assert (await rt.workflows.tree(numbers[0])).total == len(canceled)
    assert not any((await rt.read_model.invariants()).values())


@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", ["dependents", "members"])
async def test_the_failure_of_a_job_with_a_hundred_thousand_others_is_stored_at_once(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection, kind: str
) -> None:
    group: dict[str, Any] = {"group": {"name": "g", "kind": "parallel"}}
    first = await make.queued(queue="q", **({} if kind == "dependents" else group))
    fields: dict[str, Any] = {"after": (first,)} if kind == "dependents" else {"group": "g"}
    requests = [invocation(type="noop", queue="q", **fields) for _ in range(1000)]
    with timed(f"{kind}: submit"):
        for _ in range(100):
            await rt.submissions.submit_many(requests, owner)
    (work, *_) = await _exchange(conn, make, [], free=1)
    began = time.monotonic()
    await rt.settlement.failure(work, Failure("broken", declared="PERMANENT"))
    sys.stdout.write(f"{kind}: the failure: {time.monotonic() - began:.2f} s\n")
    assert time.monotonic() - began < 5
    with timed(f"{kind}: the leader"):
        await _postponed(rt)
    ended = await rows(
        conn, "SELECT status::text, count(*) FROM draftsman.job_states GROUP BY 1 ORDER BY 1"
    )
    assert ended == [("canceled", 100_000), ("failed", 1)]


@pytest.mark.timeout(900)
async def test_a_hundred_thousand_jobs_that_are_due_in_the_same_minute_are_queued_within_it(
    rt: Runtime, owner: Actor, clock: Clock
) -> None:
    requests = [invocation(type="noop", queue="q", delay=60) for _ in range(1000)]
    for _ in range(100):
        await rt.submissions.submit_many(requests, owner)
    await clock.forward(61)
    began = time.monotonic()
    queued = 0
    while some := await rt.sweeps.run("promote", LeaderTerm()):
        queued += some
    seconds = time.monotonic() - began
    sys.stdout.write(f"promoted {queued} jobs in {seconds:.1f} s\n")
    assert queued == 100_000
    assert seconds < 60


async def _postponed(rt: Runtime) -> None:
    """Do the postponed work as the leader does."""
    while await rt.sweeps.run("postponed", LeaderTerm()):
        pass


async def _exchange(
    conn: Connection, make: Factory, done: list[ClaimedJob], free: int = SLOTS
) -> list[ClaimedJob]:
    """Settle and claim as a worker does; return the started jobs."""
    results = await exchange(
        conn,
        [(job.lease, Done().result) for job in done],
        worker=make.worker,
        queues=["q"],
        types=["noop"],
        free=free,
        ahead=0,
    )
    return [job for job in results if job.status is Status.RUNNING]
