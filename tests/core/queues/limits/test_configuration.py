"""The configuration of limits: written by the leader once in its term, and its history."""

from __future__ import annotations

from uuid import uuid4

import pytest

from draftsman.database.database import Connection
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.people.actor import Actor
from draftsman.queues.service.sweeps import LimitSweep
from draftsman.runtime import Runtime
from draftsman.settings.limits import UsageSettings
from draftsman_testing.factories import Factory
from tests.support.limits import check_places, placed, set_limits, waiting
from tests.support.statements import rows, run, value


async def _lead(rt: Runtime) -> LeaderTerm:
    owner = uuid4()
    term = await rt.sweeps.acquire(owner, 60)
    assert term is not None
    return LeaderTerm(owner, term)


def _sweep(rt: Runtime, **scopes: object) -> LimitSweep:
    return LimitSweep(rt.db, UsageSettings.model_validate(scopes).rules())


async def test_the_leader_writes_its_limits_once_in_its_term(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    numbers = [await make.queued(queue="q") for _ in range(2)]
    term = await _lead(rt)
    sweep = _sweep(rt, queue={"q": {"running": 1}})
    await sweep.sweep(term)
    assert await placed(conn) == numbers[:1]
    await set_limits(rt, conn, queue={"q": {"running": 2}})  # a later leader, elsewhere
    await sweep.sweep(term)
    assert await placed(conn) == numbers
    (newest, first) = await rt.queues.limit_changes()
    assert (first.text, newest.text) == ("queue q: running 1", "queue q: running 2")
    assert first.actor == "system"


async def test_equal_limits_are_no_change(rt: Runtime, conn: Connection) -> None:
    for rate in ("20/60m", "20/1h"):
        repo = {"shop": {"rate": rate, "running": 1}, "*": {"running": 2}}
        await _sweep(rt, repo=repo).sweep(await _lead_again(rt, conn))
    (change,) = await rt.queues.limit_changes()
    assert change.text == "each repo: running 2; repo shop: running 1, rate 20/1h"
    await _sweep(rt).sweep(await _lead_again(rt, conn))
    assert (await rt.queues.limit_changes())[0].text == "no limits"


async def _lead_again(rt: Runtime, conn: Connection) -> LeaderTerm:
    await run(
        conn, "UPDATE draftsman.leases SET expires_at = draftsman.now() WHERE name = 'leader'"
    )
    return await _lead(rt)


@pytest.mark.parametrize("stale", [LeaderTerm(), LeaderTerm(uuid4(), 99)])
async def test_only_the_leader_writes_limits(
    rt: Runtime, conn: Connection, stale: LeaderTerm
) -> None:
    await _sweep(rt, all={"running": 1}).sweep(stale)
    assert await value(conn, "SELECT count(*) FROM draftsman.limits") == 0


async def test_a_job_of_a_transaction_from_before_the_change_gets_its_limits(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    async with rt.db.connection() as older, older.transaction():
        await run(older, "SELECT pg_current_xact_id()")
        await set_limits(rt, conn, queue={"q": {"running": 1}})
        assert await value(conn, "SELECT checked_to FROM draftsman.limit_changes") is not None
        numbers = [await make.queued(queue="q") for _ in range(2)]
        # as inserted by the older transaction
        await run(
            conn,
            "UPDATE draftsman.job_states SET limits = '{}', hold = NULL, held_by = NULL"
            " WHERE number = %s",
            (numbers[1],),
        )
        assert await waiting(conn) == {}
    await rt.sweeps.run("limits", LeaderTerm())
    await rt.sweeps.run("limits", LeaderTerm())
    assert await waiting(conn) == {numbers[1]: "queue:q"}
    assert await value(conn, "SELECT checked_to FROM draftsman.limit_changes") is None
    await check_places(rt)


async def test_unused_buckets_are_removed(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection
) -> None:
    await set_limits(rt, conn, repo={"*": {"running": 1}}, person={"*": {"rate": "5/1h"}})
    number = await make.queued(queue="q", repo="https://git.example.org/a/b")
    await rt.job_control.cancel(number, owner)
    await rt.sweeps.run("limits", LeaderTerm())
    assert await rows(conn, "SELECT name FROM draftsman.limit_buckets") == [("person:root",)]


async def test_limits_are_listed_with_their_use(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    await set_limits(
        rt, conn, queue={"q": {"running": 2}, "idle": {"running": 5}}, repo={"*": {"rate": "3/1h"}}
    )
    jobs = [await make.queued(queue="q", repo="https://git.example.org/a/b") for _ in range(3)]
    uses = {use.name: use for use in await rt.queues.limits()}
    assert sorted(uses) == ["queue:idle", "queue:q", "repo:*", "repo:git.example.org/a/b"]
    q = uses["queue:q"]
    repo = uses["repo:git.example.org/a/b"]
    assert (q.taken, q.free, q.waiting, q.jobs) == (2, 0, 1, jobs[:2])
    assert (repo.taken, repo.started, repo.free, repo.waiting) == (2, 2, 1, 0)
    assert uses["queue:idle"].free == 5
    assert uses["repo:*"].is_rule


async def test_places_of_a_raised_limit_go_to_the_first_jobs_also_if_later_ones_get_new_limits(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    await set_limits(rt, conn, type={"noop": {"running": 1}})
    numbers = [await make.queued() for _ in range(2)]
    later = await make.queued(repo="https://git.example.org/x/shop")
    assert await placed(conn) == numbers[:1]
    await set_limits(rt, conn, type={"noop": {"running": 2}}, repo={"*": {"running": 1}})
    assert await placed(conn) == numbers
    assert list(await waiting(conn)) == [later]
    await check_places(rt)


async def test_changed_limits_give_places_in_order_to_jobs_that_wait_in_different_buckets(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    await set_limits(rt, conn, all={"running": 1})
    shop, web = [await make.queued(repo=f"https://git.example.org/x/{r}") for r in ("shop", "web")]
    later = await make.queued()
    await set_limits(rt, conn, type={"noop": {"running": 2}}, repo={"*": {"running": 1}})
    assert await placed(conn) == [shop, web]
    assert await waiting(conn) == {later: "type:noop"}
    await check_places(rt)
