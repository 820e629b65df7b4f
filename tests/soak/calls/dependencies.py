"""Dependencies between jobs."""

from __future__ import annotations

from typing import Final

from draftsman.database.database import Connection
from draftsman.jobs.job import Condition, Source
from draftsman.jobs.requests.service.request_rows import row
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.jobs.requests.store import submissions
from draftsman.jobs.runs.store import jobs, locked_jobs
from draftsman.people.actor import Actor
from draftsman.workflows.store import dependencies
from draftsman.workflows.store.dependencies import Link
from tests.soak.calls.call import MIDDLE, MISSING, RUNNING, Call, last_of
from tests.soak.calls.claim import NO_LIMITS

ME: Final = Actor(Source.CLI, "soak", "soak")


async def _linked(conn: Connection) -> tuple[int, int]:
    """Submit a job that waits for a queued job and a finished job; return parent and job."""
    parent = last_of("queued", 7)
    columns = row(invocation(type="noop", after=(parent,)), ME, NO_LIMITS)
    (job,) = await submissions.submit(conn, [columns], "soak")
    links = [Link(job.number, number, Condition.ANY) for number in (parent, MIDDLE)]
    assert await dependencies.link(conn, links) == set()
    return parent, job.number


async def _read(conn: Connection) -> None:
    parent, job = await _linked(conn)
    assert len(await dependencies.parents(conn, job)) == 2
    assert len((await dependencies.tree(conn, parent, 1)).jobs) == 1
    assert await dependencies.tree_size(conn, parent) == 2
    assert await dependencies.waiting_count(conn, parent) == 1
    assert await dependencies.skipped(conn, parent) == []
    assert await dependencies.tree_invokers(conn, parent)


async def _cancel_tree(conn: Connection) -> None:
    parent, job = await _linked(conn)
    canceled = await dependencies.cancel_tree(conn, parent, "soak", "no")
    assert [number for number, _ in canceled] == [parent, job]


async def _cancel_parent(conn: Connection) -> None:
    parent, job = await _linked(conn)
    await locked_jobs.cancel_now(conn, parent, "soak", "no")
    assert all(parent.met for parent in await dependencies.parents(conn, job))


async def _spawn(conn: Connection) -> None:
    run = RUNNING[0]
    assert await jobs.lock_run(conn, run)
    columns = row(invocation(type="noop"), ME, NO_LIMITS)
    columns |= {"idempotency_key": f"spawn:{run.job}:a"}
    (job,) = await submissions.submit(conn, [columns], "soak")
    await dependencies.record_spawn(conn, run, job.number)
    assert len(await dependencies.spawned(conn, run.job, [job.number])) == 1
    assert await dependencies.spawner(conn, job.number) == run.job
    assert await dependencies.completed_spawn(conn, run.job, "a", "0") is None
    conflicts = await dependencies.spawn_conflicts(conn, run.job, "a", "k")
    assert conflicts == (job.number, columns["request_digest"], None)
    assert await dependencies.await_jobs(conn, run, [job.number]) == 1
    await dependencies.lock_waits(conn)
    assert await dependencies.wait_cycle(conn, run.job) == (False, [])


_SPAWN: Final = Call(_spawn)
_READ: Final = Call(_read)
CALLS: Final[dict[str, Call]] = {
    "dependencies.link": Call(_linked),
    "jobs.lock_run": _SPAWN,
    "dependencies.record_spawn": _SPAWN,
    "dependencies.spawned": _SPAWN,
    "dependencies.spawner": _SPAWN,
    "dependencies.spawn_conflicts": _SPAWN,
    "dependencies.completed_spawn": _SPAWN,
    "dependencies.await_jobs": _SPAWN,
    "dependencies.lock_waits": _SPAWN,
    "dependencies.wait_cycle": _SPAWN,
    "dependencies.skipped": _READ,
    "jobs.missing": Call(lambda conn: jobs.missing(conn, [MIDDLE, MISSING])),
    "dependencies.parents": _READ,
    "dependencies.tree": _READ,
    "dependencies.tree_size": _READ,
    "dependencies.waiting_count": _READ,
    "dependencies.tree_invokers": _READ,
    "dependencies.cancel_tree": Call(_cancel_tree),
    "locked_jobs.cancel_now: a parent": Call(_cancel_parent),
}
