"""Transactions that stay open: a worker settles and claims other jobs meanwhile."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from draftsman import Client, Draftsman
from draftsman.database.database import Connection
from draftsman.handlers.registry import Handler
from draftsman.jobs.job import Status
from draftsman.jobs.requests.invocation import Unique
from draftsman.processes.host import login
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.waits import until
from tests.core.worker.workers import (
    BlockingHandler,
    noop,
    running_worker,
    runtime_with,
    wait_for_end,
)
from tests.support.limits import check_places, placed
from tests.support.slow import slow_except
from tests.support.statements import rows, run

LIMITS = {
    "type": {"one": {"running": 1}, "two": {"running": 2}},
    "queue": {"fair": {"running": 2, "partition": "person"}},
}


@dataclass
class Story:
    """A worker, a job that it runs, and a transaction of another program that stays open."""

    rt: Runtime
    make: Factory
    client: Client
    conn: Connection
    callers: Connection
    handler: BlockingHandler

    async def running(self, **fields: Any) -> int:
        """Submit a job, and wait until the worker runs it."""
        number = await self.make.queued(**{"type": "slow", "queue": "q", **fields})
        await self.handler.next()
        return number

    async def submit(self, **fields: Any) -> int:
        """Submit a job in the open transaction."""
        fields = {"type": "slow", "queue": "q", **fields}
        job = await self.client.submit(connection=self.callers, unchecked=True, **fields)
        return job.number

    async def settle(self, *numbers: int) -> None:
        """Let the runs end; another job is run and settled by the same worker meanwhile."""
        self.handler.go.set()
        other = await self.make.queued(type="noop", queue="q")
        for number in (*numbers, other):
            assert (await wait_for_end(self.rt, number)).status is Status.COMPLETED
        await self.is_open()

    async def check(self) -> None:
        """Check that no work is left, and that all places are counted."""

        async def done() -> bool:
            return not await rows(self.conn, "SELECT id FROM draftsman.postponed_work")

        await until(done, "the postponed work")
        await check_places(self.rt)
        assert await placed(self.conn) == []

    async def is_open(self) -> None:
        """Check that the transaction of the caller is still open."""
        pid = self.callers.info.backend_pid
        ((state,),) = await rows(
            self.conn, "SELECT state FROM pg_stat_activity WHERE pid = %s", (pid,)
        )
        assert state == "idle in transaction"


@pytest.fixture
async def story(
    rt: Runtime, make: Factory, conn: Connection, tmp_path: Path, database_url: str
) -> AsyncIterator[Story]:
    """Run a worker that leads, beside a connection of another program."""
    config = tmp_path / "draftsman.toml"
    config.write_text(f'[people.me]\nlogin = "{login()}"\nroles = ["invoker", "operator"]\n')
    handler = BlockingHandler()
    handlers: dict[str, Handler] = {"slow": handler, "one": handler, "two": handler, "noop": noop}
    limited = runtime_with(rt, limits=LIMITS)
    async with (
        Draftsman(database_url, config=config) as client,
        rt.db.connection() as callers,
        running_worker(limited, handlers, leader=True, queues=("q", "r", "fair"), slots=4),
    ):

        async def limits_are_written() -> bool:
            return bool(await rows(conn, "SELECT scope FROM draftsman.limits"))

        await until(limits_are_written, "the limits of the leader")
        yield Story(rt, make, client, conn, callers, handler)


async def _limit(story: Story) -> list[int]:
    first = await story.running(type="two")
    await story.submit(type="two")
    return [first]


async def _full_limit(story: Story) -> list[int]:
    first = await story.running(type="one")
    await story.submit(type="one")
    return [first, await story.make.queued(type="one", queue="q")]


async def _fairness(story: Story) -> list[int]:
    first = await story.running(queue="fair")
    await story.submit(queue="fair")
    return [first, await story.make.queued(type="slow", queue="fair")]


async def _key(story: Story) -> list[int]:
    first = await story.running(concurrency_key="k")
    await story.submit(concurrency_key="k")
    return [first, await story.make.queued(type="slow", queue="q", concurrency_key="k")]


async def _limit_and_key(story: Story) -> list[int]:
    first = await story.running(type="two", concurrency_key="k")
    await story.submit(type="two", concurrency_key="k")
    return [first]


async def _child_of_a_waiting_job(story: Story) -> list[int]:
    first = await story.running()
    child = await story.make.queued(type="slow", queue="q", after=(first,))
    await story.submit(after=(child,))
    return [first]


async def _group(story: Story) -> list[int]:
    group = {"name": "g", "kind": "parallel"}
    first = await story.running(group=group)
    await story.submit(group="g")
    return [first]


async def _subject(story: Story) -> list[int]:
    first = await story.running()
    joined = await story.make.queued(type="slow", queue="q", subject_key="s", after=(first,))
    assert await story.submit(subject_key="s") == joined
    return [first]


async def _replaced(story: Story) -> list[int]:
    first = await story.running(type="two")
    unique = Unique(replace=True)
    fields: dict[str, Any] = {
        "type": "two",
        "subject_key": "s",
        "unique": unique,
        "concurrency_key": "k",
    }
    old = await story.make.queued(queue="q", delay=3600, **fields)
    assert await story.submit(**fields) != old
    return [first]


SUBMISSIONS = (
    *(_limit, _full_limit, _fairness, _key, _limit_and_key, _child_of_a_waiting_job, _group),
    *(_subject, _replaced),
)
COMMITTED = [(submit, True) for submit in SUBMISSIONS]
ROLLED_BACK = [(submit, False) for submit in SUBMISSIONS]


@pytest.mark.parametrize(
    ("submit", "commits"),
    slow_except([*COMMITTED, (_limit_and_key, False), (_group, False)], COMMITTED + ROLLED_BACK),
)
async def test_a_submission_in_an_open_transaction_delays_no_worker(
    story: Story, submit: Callable[[Story], Awaitable[list[int]]], commits: bool
) -> None:
    async with story.callers.transaction(force_rollback=not commits):
        await story.settle(*await submit(story))

    async def all_ended() -> bool:
        return not await rows(
            story.conn,
            "SELECT number FROM draftsman.job_states"
            " WHERE finished_at IS NULL AND status <> 'scheduled'",
        )

    await until(all_ended, "the end of the jobs of the transaction")
    await story.check()


@pytest.mark.parametrize(
    "lock",
    [
        "SELECT FROM draftsman.limit_buckets WHERE name = 'type:two' FOR UPDATE",
        "SELECT draftsman.lock_keys('{k}')",
    ],
    ids=["bucket", "key"],
)
async def test_a_submission_that_needs_a_lock_of_an_open_transaction_leaves_that_to_the_leader(
    story: Story, lock: str
) -> None:
    first = await story.running(type="two")
    async with story.callers.transaction():
        await run(story.callers, lock)
        second = await story.make.queued(type="two", queue="q", concurrency_key="k")
        await story.settle()
    for number in (first, second):
        assert (await wait_for_end(story.rt, number)).status is Status.COMPLETED
    await story.check()


@pytest.mark.parametrize(
    ("lock", "releases_child"),
    [
        ("SELECT FROM draftsman.limit_buckets WHERE name = 'type:one' FOR UPDATE", True),
        ("SELECT draftsman.lock_keys('{k}')", True),
        ("SELECT FROM draftsman.job_states WHERE number = child FOR UPDATE", False),
        ("SELECT FROM draftsman.queue_reservations FOR UPDATE", True),
    ],
    ids=["bucket", "key", "child", "reservation"],
)
async def test_an_end_that_needs_a_lock_of_an_open_transaction_leaves_that_to_the_leader(
    story: Story, lock: str, releases_child: bool
) -> None:
    first = await story.running(type="one", concurrency_key="k", queue="r")
    await run(
        story.conn,
        "INSERT INTO draftsman.queue_reservations (queue, job, actor, seconds, expires_at)"
        " VALUES ('r', %s, 'cli:root', 86400, draftsman.now() + interval '1 day')",
        (first,),
    )
    child = await story.make.queued(type="noop", queue="q", after=(first,))
    waiting = await story.make.queued(type="one", queue="q")
    keyed = await story.make.queued(type="noop", queue="q", concurrency_key="k")
    async with story.callers.transaction():
        await run(story.callers, lock.replace("child", str(child)))
        await story.settle(first)
        if releases_child:
            await wait_for_end(story.rt, child)
            await story.is_open()
    for number in (child, waiting, keyed):
        await wait_for_end(story.rt, number)
    await story.check()
    assert await rows(story.conn, "SELECT job FROM draftsman.queue_reservations") == []
