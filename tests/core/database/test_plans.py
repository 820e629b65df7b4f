"""Plans on a server with default settings: none is compiled, and none has a disabled node."""

from __future__ import annotations

from uuid import UUID

import pytest

from draftsman.database.database import Connection, Database
from draftsman.deliveries.target import parse
from draftsman.jobs.job import Source, Status
from draftsman.jobs.requests.service.request_rows import row
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.jobs.requests.store import submissions
from draftsman.jobs.runs.job_limits import JobLimits
from draftsman.jobs.runs.run import ClaimedJob
from draftsman.jobs.runs.store import claim
from draftsman.people.actor import Actor
from draftsman.runtime import ENUMS
from draftsman.settings.database import DatabaseSettings
from draftsman_testing.factories import Factory
from tests.support.planner import planned
from tests.support.server import Server
from tests.support.statements import run, value

MANY = 100
ME = Actor(Source.CLI, "test", "test")
PERSON_OF = "c, f, i, l, p, "
"""Tables of a function that the planner calls to estimate a condition for sessions of people."""
CANCEL = """
UPDATE draftsman.job_states
   SET status = 'canceled', version = version + 1, finished_at = now()
 WHERE number = ANY (%(jobs)s)"""


async def _claim_and_settle(
    conn: Connection, worker: UUID, free: int, done: list[ClaimedJob]
) -> list[ClaimedJob]:
    """Settle and claim as a worker does."""
    return await claim.exchange(
        conn,
        [(job.lease, {}) for job in done],
        worker=worker,
        queues=["default"],
        types=["noop"],
        free=free,
        ahead=0,
    )


@pytest.mark.parametrize("sizes", [(1, MANY), (MANY, 1)], ids=["few-first", "many-first"])
async def test_a_worker_needs_no_disabled_node_and_no_compilation(
    db: Database, make: Factory, sizes: tuple[int, int]
) -> None:
    for number in range(sum(sizes)):
        await make.queued(queue="default", notify=("log",) if number % 10 == 0 else ())
    async with db.dedicated_session().connection(5) as conn, planned(conn) as plans:
        done: list[ClaimedJob] = []
        for size in sizes:
            claimed = await _claim_and_settle(conn, make.worker, size, done)
            done = [job for job in claimed if job.status is Status.RUNNING]
            assert len(done) == size
        await _claim_and_settle(conn, make.worker, 0, done)
    assert plans.wrong() == []
    assert plans.linear("old_states"), "a batch of a thousand uses the plan of a batch of one"


@pytest.mark.parametrize("sizes", [(1, MANY), (MANY, 1)], ids=["few-first", "many-first"])
async def test_a_psql_session_needs_no_disabled_node_and_no_compilation(
    conn: Connection, make: Factory, sizes: tuple[int, int]
) -> None:
    async with planned(conn) as plans:
        for size in sizes:
            jobs = [await make.queued() for _ in range(size)]
            assert await run(conn, CANCEL, {"jobs": jobs}) == size
    assert plans.wrong() == []
    assert plans.linear("old_states"), "a batch of a thousand uses the plan of a batch of one"


@pytest.mark.parametrize("sizes", [(1, MANY), (MANY, 1)], ids=["few-first", "many-first"])
@pytest.mark.parametrize("kind", ["new", "keyed", "with targets"])
async def test_submission_needs_no_disabled_node_and_no_compilation(
    conn: Connection, sizes: tuple[int, int], kind: str
) -> None:
    targets = [parse("slack:C1/1700000000.000100")] if kind == "with targets" else []
    async with planned(conn) as plans:
        for size in sizes:
            keys = [f"{size}-{number}" if kind != "new" else None for number in range(size)]
            requests = [row(invocation(type="noop", key=key), ME, JobLimits({})) for key in keys]
            for request in requests:
                request["has_targets"] = bool(targets)
            jobs = await submissions.submit(conn, requests, "test", [targets] * size)
            assert len(jobs) == size
    assert [problem for problem in plans.wrong() if not problem.startswith(PERSON_OF)] == []
    # the jobs of a batch by the payload of their event
    assert plans.linear("g"), "the plan of a single job serves a batch"


async def test_a_session_of_draftsman_compiles_nothing(server: Server, own_database: str) -> None:
    server.set(own_database, "jit", "on")
    db = Database(server.url(own_database), DatabaseSettings(), enums=ENUMS)
    await db.open()
    try:
        async with db.connection() as pooled, db.dedicated_session().connection(5) as pinned:
            dedicated = await db.dedicated_connection()
            settings = [await value(conn, "SHOW jit") for conn in (pooled, pinned, dedicated)]
            await dedicated.close()
    finally:
        await db.close()
    assert settings == ["off", "off", "off"]
