"""Dependencies between jobs."""

from __future__ import annotations

from typing import Final

from draftsman.database.database import Connection
from draftsman.jobs.job import Condition, Source
from draftsman.jobs.requests.service.request_rows import row
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.jobs.requests.store import submissions
from draftsman.jobs.runs.store import jobs
from draftsman.people.actor import Actor
from draftsman.workflows import store as workflows
from draftsman.workflows.store import Link
from tests.soak.calls.call import MIDDLE, MISSING, RUNNING, Call, last_of
from tests.soak.calls.claim import NO_LIMITS

ME: Final = Actor(Source.CLI, "soak", "soak")


async def _linked(conn: Connection) -> tuple[int, int]:
    """Submit a job that waits for a queued job and a finished job; return parent and job."""
    parent = last_of("queued", 7)
    columns = row(invocation(type="noop", after=(parent,)), ME, NO_LIMITS)
    (job,) = await submissions.submit(conn, [columns], "soak")
    links = [Link(job.number, number, Condition.ANY) for number in (parent, MIDDLE)]
    assert await workflows.link(conn, links) == set()
    return parent, job.number


async def _read(conn: Connection) -> None:
    parent, job = await _linked(conn)
    assert len(await workflows.parents(conn, job)) == 2
    assert len((await workflows.tree(conn, parent, 1)).jobs) == 1
    assert await workflows.tree_size(conn, parent) == 2
    assert await workflows.waiting_count(conn, parent) == 1
    assert await workflows.skipped(conn, parent) == []
    assert await workflows.tree_invokers(conn, parent)


async def _cancel_tree(conn: Connection) -> None:
    parent, job = await _linked(conn)
    canceled = await workflows.cancel_tree(conn, parent, "soak", "no")
    assert [number for number, _ in canceled] == [parent, job]


async def _cancel_parent(conn: Connection) -> None:
    parent, job = await _linked(conn)
    await jobs.cancel_now(conn, parent, "soak", "no")
    assert all(parent.met for parent in await workflows.parents(conn, job))


async def _spawn(conn: Connection) -> None:
    run = RUNNING[0]
    assert await jobs.lock_run(conn, run)
    columns = row(invocation(type="noop"), ME, NO_LIMITS)
    columns |= {"idempotency_key": f"spawn:{run.job}:a"}
    (job,) = await submissions.submit(conn, [columns], "soak")
    await workflows.record_spawn(conn, run, job.number)
    assert len(await workflows.spawned(conn, run.job, [job.number])) == 1
    assert await workflows.spawner(conn, job.number) == run.job
    assert await workflows.completed_spawn(conn, run.job, "a", "0") is None
    conflicts = await workflows.spawn_conflicts(conn, run.job, "a", "k")
    assert conflicts == (job.number, columns["request_digest"], "noop", {}, None)
    assert await workflows.spawn_change(conn, run.job, "a") is None
    assert await workflows.await_jobs(conn, run, [job.number]) == 1
    await workflows.lock_waits(conn)
    assert await workflows.wait_cycle(conn, run.job) == (False, [])


_SPAWN: Final = Call(_spawn)
_READ: Final = Call(_read)
CALLS: Final[dict[str, Call]] = {
    "workflows.link": Call(_linked),
    "jobs.lock_run": _SPAWN,
    "workflows.record_spawn": _SPAWN,
    "workflows.spawned": _SPAWN,
    "workflows.spawner": _SPAWN,
    "workflows.spawn_conflicts": _SPAWN,
    "workflows.completed_spawn": _SPAWN,
    "workflows.spawn_change": _SPAWN,
    "workflows.await_jobs": _SPAWN,
    "workflows.lock_waits": _SPAWN,
    "workflows.wait_cycle": _SPAWN,
    "workflows.skipped": _READ,
    "jobs.missing": Call(lambda conn: jobs.missing(conn, [MIDDLE, MISSING])),
    "workflows.parents": _READ,
    "workflows.tree_jobs": _READ,
    "workflows.tree_size": _READ,
    "workflows.waiting_count": _READ,
    "workflows.tree_invokers": _READ,
    "workflows.cancel_tree": Call(_cancel_tree),
    "jobs.cancel_now: a parent": Call(_cancel_parent),
}
