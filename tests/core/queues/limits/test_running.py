"""Limits of the jobs that run at a time, through each transition."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final

import pytest

from draftsman.database.database import Connection
from draftsman.errors import Failure, LeaseLost
from draftsman.jobs.job import Status
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.jobs.runs.outcome import Done, Snooze
from draftsman.jobs.runs.run import ClaimedJob, LeaderTerm
from draftsman.jobs.runs.store.claim import exchange
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman_testing.factories import QUESTION, Factory
from tests.core.queues.test_queues import claim
from tests.support.limits import check_places, placed, set_limits, waiting
from tests.support.statements import CHECK, refused, run, value

SHOP: Final[dict[str, Any]] = {"queue": "q", "repo": "https://git.example.org/a/shop"}
Arrow = Callable[[Runtime, Factory, ClaimedJob], Awaitable[object]]


@pytest.fixture(autouse=True)
async def _check(rt: Runtime) -> AsyncIterator[None]:
    yield
    await check_places(rt)


async def test_no_more_jobs_of_a_repository_run_than_its_limit(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    await set_limits(rt, conn, repo={"a/shop": {"running": 2}})
    shop = "https://git.example.org/{}/shop"
    numbers = [await make.queued(queue="q", repo=shop.format(owner)) for owner in "aaaA"]
    other = await make.queued(queue="q", repo="https://git.example.org/a/other")
    works = await claim(conn, make)
    assert [work.number for work in works] == [*numbers[:2], other]
    assert await waiting(conn) == dict.fromkeys(numbers[2:], "repo:a/shop")
    why = await rt.read_model.why(numbers[3])
    names = f"D-{numbers[0]}, D-{numbers[1]}"
    assert (why.reason, why.text) == ("limit", f"2 of 2 running for repo a/shop: {names}")
    await rt.settlement.outcome(works[1], Done())
    assert [work.number for work in await claim(conn, make)] == [numbers[2]]


async def test_a_repository_of_the_same_name_on_another_host_has_places_of_its_own(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    hosts = ("git.example.org", "gitlab.example", "third.example")
    limits = {"*": 1, "a/shop": 2, "gitlab.example/a/shop": 1, "third.example/shop": 9}
    await set_limits(
        rt, conn, repo={name: {"running": at_once} for name, at_once in limits.items()}
    )
    jobs = {
        (host, name): [await make.queued(queue="q", repo=f"https://{host}/{name}") for _ in "123"]
        for name in ("a/shop", "a/other")
        for host in hosts
    }
    held = await waiting(conn)
    assert [held.get(number) for number in jobs[hosts[0], "a/shop"]] == [None, None, "repo:a/shop"]
    own = ["repo:gitlab.example/a/shop"] * 2
    assert [held.get(number) for number in jobs[hosts[1], "a/shop"]] == [None, *own]
    assert {held.get(number) for number in jobs[hosts[2], "a/shop"]} == {"repo:a/shop"}
    for host in hosts:
        each = f"repo:{host}/a/other"
        assert [held.get(number) for number in jobs[host, "a/other"]] == [None, each, each]


async def test_each_repository_has_places_of_its_own(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    await set_limits(rt, conn, repo={"*": {"running": 1}, "b": {"running": 2}})
    jobs = [
        await make.queued(queue="q", repo=f"https://git.example.org/x/{name}") for name in "aabbbcc"
    ]
    assert [work.number for work in await claim(conn, make)] == [jobs[i] for i in (0, 2, 3, 5)]
    assert set((await waiting(conn)).values()) == {
        "repo:git.example.org/x/a",
        "repo:b",
        "repo:git.example.org/x/c",
    }


async def test_a_batch_takes_places_in_the_order_of_its_requests(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection
) -> None:
    await set_limits(rt, conn, type={"noop": {"running": 3}})
    types = ("noop", "report", "noop", "noop", "report", "noop", "noop")
    jobs = await rt.submissions.submit_many(
        [invocation(type=name, queue="q") for name in types], owner
    )
    claimed = [work.number for work in await claim(conn, make)]
    assert claimed == [jobs[i].number for i in (0, 1, 2, 3, 4)]


async def test_a_job_needs_a_place_in_each_of_its_buckets(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection
) -> None:
    await set_limits(rt, conn, repo={"*": {"running": 1}}, type={"noop": {"running": 2}})
    a, b, c = [
        [await make.queued(queue="q", repo=f"https://git.example.org/x/{name}") for _ in range(2)]
        for name in "abc"
    ]
    assert await placed(conn) == [a[0], b[0]]
    assert await waiting(conn) == {
        a[1]: "repo:git.example.org/x/a",
        b[1]: "repo:git.example.org/x/b",
        c[0]: "type:noop",
        c[1]: "type:noop",
    }
    await rt.job_control.cancel(a[0], owner)  # its repository is free, its type goes to c
    assert await placed(conn) == [a[1], b[0]]
    await rt.job_control.cancel(a[1], owner)
    assert await placed(conn) == [b[0], c[0]]
    assert await waiting(conn) == {b[1]: "repo:git.example.org/x/b", c[1]: "type:noop"}
    await rt.job_control.cancel(b[0], owner)
    assert await placed(conn) == [b[1], c[0]]
    assert await waiting(conn) == {c[1]: "type:noop"}


async def _finish(rt: Runtime, make: Factory, work: ClaimedJob) -> None:
    await rt.settlement.outcome(work, Done())


async def _fail(rt: Runtime, make: Factory, work: ClaimedJob) -> None:
    await rt.settlement.failure(work, Failure("no", declared="PERMANENT"))


async def _retry(rt: Runtime, make: Factory, work: ClaimedJob) -> None:
    assert await rt.settlement.failure(work, Failure("no", http_status=503)) is Status.RETRYING


async def _snooze(rt: Runtime, make: Factory, work: ClaimedJob) -> None:
    await rt.settlement.outcome(work, Snooze(3600))


async def _ask(rt: Runtime, make: Factory, work: ClaimedJob) -> None:
    await rt.asking.ask(work.lease, QUESTION)


async def _cancel(rt: Runtime, make: Factory, work: ClaimedJob) -> None:
    await rt.job_control.cancel(work.number, make.owner)
    await rt.settlement.outcome(work, Done())


async def _settle(rt: Runtime, make: Factory, work: ClaimedJob) -> None:
    await rt.claim(make.worker, ("q",)).exchange(
        [(work.lease, {})], types=["noop"], free=0, ahead=0
    )


async def _lose(rt: Runtime, make: Factory, work: ClaimedJob) -> None:
    await rt.dead_workers.rescue(LeaderTerm(), [make.worker])


@pytest.mark.parametrize("arrow", [_finish, _fail, _retry, _snooze, _ask, _cancel, _settle, _lose])
async def test_every_end_of_a_run_gives_its_place_to_the_next_job(
    rt: Runtime, make: Factory, conn: Connection, arrow: Arrow
) -> None:
    await set_limits(rt, conn, queue={"q": {"running": 1}})
    work = await make.running(queue="q", on_lost="fail")
    later = [await make.queued(queue="q") for _ in range(2)]
    assert await placed(conn) == [work.number]
    await arrow(rt, make, work)
    assert await placed(conn) == [later[0]]
    assert [job.number for job in await claim(conn, make)] == [later[0]]


async def _release(rt: Runtime, make: Factory, work: ClaimedJob) -> None:
    await rt.settlement.release_run(work, "shutdown")


async def _rescue(rt: Runtime, make: Factory, work: ClaimedJob) -> None:
    await rt.dead_workers.rescue(LeaderTerm(), [make.worker])


@pytest.mark.parametrize("arrow", [_release, _rescue])
async def test_a_run_that_is_resumed_at_once_keeps_its_place(
    rt: Runtime, make: Factory, conn: Connection, arrow: Arrow
) -> None:
    await set_limits(rt, conn, queue={"q": {"running": 1}})
    work = await make.running(queue="q", on_lost="resume")
    await make.queued(queue="q")
    await arrow(rt, make, work)
    assert await placed(conn) == [work.number]


async def test_a_claimed_job_that_goes_back_keeps_its_place(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    await set_limits(rt, conn, queue={"q": {"running": 1}})
    work = await make.claimed(queue="q")
    await make.queued(queue="q")
    await rt.claim(make.worker, ("q",)).release_claims([work.lease], "shutdown")
    assert await placed(conn) == [work.number]


@pytest.mark.parametrize("state", ["retrying", "paused", "asked", "scheduled"])
async def test_a_job_that_is_queued_again_waits_for_a_place(
    rt: Runtime, make: Factory, conn: Connection, state: str
) -> None:
    await set_limits(rt, conn, queue={"q": {"running": 1}})
    made = await getattr(make, state)(queue="q")
    number = made if isinstance(made, int) else made.number
    other = await make.running(queue="q")
    if state == "asked":
        await make.answer(number, "red")
    else:
        await run(
            conn,
            "UPDATE draftsman.job_states SET run_at = draftsman.now(), next_retry_at = CASE status"
            " WHEN 'retrying' THEN draftsman.now() END WHERE number = %s",
            (number,),
        )
        await rt.promotion.promote(LeaderTerm())
    assert await waiting(conn) == {number: "queue:q"}
    assert await claim(conn, make) == []
    await rt.settlement.outcome(other, Done())
    assert [job.number for job in await claim(conn, make)] == [number]


async def test_places_are_given_in_queue_order(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection
) -> None:
    await set_limits(rt, conn, queue={"q": {"running": 1}})
    first, low, high, moved = [
        await make.queued(queue="q", priority=priority) for priority in (0, 0, 5, 0)
    ]
    assert await placed(conn) == [first]
    await rt.queues.prioritize(moved, 9, owner)
    for expected in (first, moved, high, low):
        (work,) = await claim(conn, make)
        assert work.number == expected
        await rt.settlement.outcome(work, Done())


async def test_a_limit_begins_and_ends_for_the_jobs_that_exist(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    works = [await make.running(queue="q") for _ in range(2)]
    queued = [await make.queued(queue="q") for _ in range(3)]
    keyed = await make.queued(queue="q", concurrency_key="k")
    await set_limits(rt, conn, queue={"q": {"running": 3}})
    assert await placed(conn) == [*(work.number for work in works), queued[0]]
    await set_limits(rt, conn, queue={"q": {"running": 1}})
    for work in works:
        await rt.settlement.outcome(work, Done())
    assert await placed(conn) == [queued[0]]  # a place is not taken away
    await set_limits(rt, conn)
    assert await waiting(conn) == {}
    assert [work.number for work in await claim(conn, make)] == [*queued, keyed]


async def test_a_paused_queue_does_not_keep_the_places_of_a_repository(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection
) -> None:
    await set_limits(rt, conn, repo={"*": {"running": 1}})
    paused = [await make.queued(**SHOP) for _ in range(2)]
    other = await make.queued(**(SHOP | {"queue": "other"}))
    assert await placed(conn) == [paused[0]]
    await rt.queues.pause("q", owner, "r")
    assert await placed(conn) == [other]
    assert (await rt.read_model.why(paused[0])).reason == "paused"
    new = await make.queued(**SHOP, priority=9)
    assert await placed(conn) == [other]
    await rt.job_control.cancel(other, owner)
    assert await placed(conn) == []
    assert set((await waiting(conn)).values()) == {"pause"}
    await rt.queues.resume("q", owner)
    assert await placed(conn) == [new]


async def test_a_key_comes_before_the_places(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection
) -> None:
    await set_limits(rt, conn, queue={"q": {"running": 1}})
    first = await make.running(queue="q")
    key: dict[str, Any] = {"queue": "q", "concurrency_key": "deploy"}
    holder, later = [await make.queued(**key) for _ in range(2)]
    assert (await rt.read_model.why(later)).text == f"D-{holder} holds the concurrency key 'deploy'"
    assert await waiting(conn) == {holder: "queue:q"}
    await rt.settlement.outcome(first, Done())
    (work,) = await claim(conn, make)
    assert work.number == holder
    await rt.settlement.outcome(work, Done())
    assert [job.number for job in await claim(conn, make)] == [later]


async def test_a_key_is_released_while_its_job_waits_for_a_person(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    await set_limits(rt, conn, concurrency_key={"deploy": {"release_while_waiting": True}})
    key: dict[str, Any] = {"queue": "q", "concurrency_key": "deploy"}
    asked = await make.asked(**key)
    (work,) = await claim(conn, make) if (later := await make.queued(**key)) else []
    assert work.number == later
    await make.answer(asked.number, "red")
    assert (await rt.read_model.why(asked.number)).text.startswith(f"D-{later} holds")
    await rt.settlement.outcome(work, Done())
    assert [job.number for job in await claim(conn, make)] == [asked.number]


async def test_jobs_that_wait_already_keep_their_keys_when_the_limit_releases_them(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    plain = await make.asked()
    holder = await make.asked(concurrency_key="deploy")
    later = await make.queued(queue="q", concurrency_key="deploy")
    release = {"*": {"release_while_waiting": True, "rate": "5/1m"}}
    await set_limits(rt, conn, concurrency_key=release, all={"running": 5})
    assert (await rt.read_model.why(later)).text.startswith(f"D-{holder.number} holds")
    await make.answer(plain.number, "red")
    await make.answer(holder.number, "red")
    assert await placed(conn) == [plain.number, holder.number]


@pytest.mark.parametrize("end", ["expire", "cancel"])
async def test_a_job_without_its_key_may_end_while_it_waits(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection, end: str
) -> None:
    await set_limits(rt, conn, concurrency_key={"*": {"release_while_waiting": True}})
    item = QUESTION.model_copy(update={"expires_in": 0.000001})
    asked = await make.asked(item, concurrency_key="deploy")
    later = await make.queued(queue="q", concurrency_key="deploy")
    if end == "expire":
        assert await rt.expiry.expire(LeaderTerm()) == 1
    else:
        await rt.job_control.cancel(asked.number, owner)
    assert [job.number for job in await claim(conn, make)] == [later]


async def test_a_job_is_not_passed_when_places_of_two_limits_are_freed_at_once(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    one = {"running": 1}
    await set_limits(rt, conn, repo={"shop": one}, type={"build": one, "test": one})
    shop = "https://git.example.org/x/shop"
    works = [
        await make.running(queue="q", repo=shop),
        await make.running(queue="q", type="build"),
        await make.running(queue="q", type="test"),
    ]
    first = await make.queued(queue="q", repo=shop, type="test")
    second = await make.queued(queue="q", repo=shop, type="build")
    third = await make.queued(queue="q", type="build")
    waits = {first: "repo:shop", second: "repo:shop", third: "type:build"}
    assert await waiting(conn) == waits
    await exchange(
        conn,
        [(work.lease, {}) for work in works[:2]],
        worker=await make.worker_row(),
        queues=["q"],
        types=["noop"],
        free=0,
        ahead=0,
    )
    assert await placed(conn) == [works[2].number, second]
    assert await waiting(conn) == {first: "type:test", third: "type:build"}


async def test_a_bucket_never_counts_less_than_nothing(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    await set_limits(rt, conn, all={"running": 5})
    await make.queued(queue="q")
    assert await value(conn, "SELECT taken FROM draftsman.limit_buckets") == 1
    async with refused(CHECK, "limit_buckets_taken_check"):
        await run(conn, "UPDATE draftsman.limit_buckets SET taken = -1")


async def test_changed_limits_release_no_job_that_waits_for_its_parents(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    parent = await make.running(queue="other")
    child = await make.queued(queue="q", after=(parent.number,))
    await set_limits(rt, conn, queue={"q": {"running": 1}})
    assert await claim(conn, make) == []
    assert await waiting(conn) == {}
    await rt.settlement.outcome(parent, Done())
    assert await placed(conn) == [child]


async def test_an_agent_counts_from_the_run_that_finds_it(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    await set_limits(rt, conn, agent={"coder": {"running": 1}}, queue={"q": {"running": 9}})
    work = await make.running(queue="q", text="Tidy up")
    await rt.checkpoints.assign_agent(work.lease, "coder")
    await rt.checkpoints.assign_agent(work.lease, "tidy")
    assert (await rt.read_model.job(work.number)).agent_request.agent == "coder"
    later = await make.queued(queue="q", agent="coder")
    assert await waiting(conn) == {later: "agent:coder"}
    await rt.settlement.outcome(work, Done())
    assert await placed(conn) == [later]
    with pytest.raises(LeaseLost):
        await rt.checkpoints.assign_agent(work.lease, "tidy")
