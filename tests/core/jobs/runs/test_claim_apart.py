"""Candidates of claims, and jobs that a transaction keeps from the claims of others."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from draftsman.database.database import Connection, Database
from draftsman.database.isolation import Isolation
from draftsman.errors import DatabaseUnreachable, Refused
from draftsman.jobs.runs.run import ClaimedJob, Lease
from draftsman.jobs.runs.service.claim import PROBED, Claim
from draftsman.jobs.runs.store import claim as store
from draftsman.jobs.runs.store.claim import claimable_jobs, keep_from_claims
from draftsman.people.actor import Actor
from draftsman_testing.factories import Factory
from tests.support.statements import run


@pytest.fixture
def claim(make: Factory) -> Claim:
    return make.rt.claim(make.worker, ("q",))


async def test_candidates_are_in_the_order_of_claims(make: Factory, conn: Connection) -> None:
    for kind in ("indexscan", "indexonlyscan", "bitmapscan"):  # whatever the plan
        await conn.execute(f"SET enable_{kind} = off")
    priorities = [0, 5, 0, 0]
    first, urgent, moved, later = [await make.queued(queue="q", priority=p) for p in priorities]
    other = await make.queued(queue="a", priority=9)
    position = "UPDATE draftsman.job_states SET position = %s WHERE number = ANY (%s)"
    await run(conn, position, (1, [moved]))
    assert await claimable_jobs(conn, ["q", "a"], ["noop"], [], 9) == [
        *(urgent, moved, first, later),
        other,
    ]
    assert await claimable_jobs(conn, ["q"], ["noop"], [], 2) == [urgent, moved]
    await run(conn, position, (1, [urgent, first, moved, later]))
    assert await claimable_jobs(conn, ["a", "q"], ["noop"], [], 3) == [
        other,
        *(urgent, first, moved),
    ]


async def test_candidates_are_of_these_queues_and_types_and_without_jobs_set_aside(
    make: Factory, conn: Connection
) -> None:
    aside, good = [await make.queued(queue="q") for _ in range(2)]
    await make.queued(queue="q", type="report")
    await make.queued(queue="other")
    assert await claimable_jobs(conn, ["q"], ["noop"], [aside], 9) == [good]


async def test_candidates_that_are_found_by_type_are_in_the_order_of_claims(
    make: Factory, conn: Connection
) -> None:
    """Also without an index that has this order, and where more are found than are asked for."""
    for kind in ("indexscan", "indexonlyscan", "bitmapscan"):
        await conn.execute(f"SET enable_{kind} = off")
    types = ["noop", "noop", "noop", "report", "noop"]
    first, urgent, moved, later, aside = [
        await make.queued(queue="q", type=type, priority=5 * (place == 1))
        for place, type in enumerate(types)
    ]
    foreign = await make.queued(queue="q", type="foreign")
    elsewhere = await make.queued(queue="other", priority=9)
    await run(conn, "UPDATE draftsman.job_states SET by_type = true", ())
    plain = await make.queued(queue="q")
    position = "UPDATE draftsman.job_states SET position = %s WHERE number = ANY (%s)"
    await run(conn, position, (1, [moved]))

    async def candidates(limit: int) -> list[int]:
        return await claimable_jobs(conn, ["q"], ["noop", "report"], [aside], limit)

    assert foreign < elsewhere
    assert await candidates(9) == [urgent, moved, first, later, plain]
    assert await candidates(1) == [urgent]
    assert await candidates(2) == [urgent, moved]
    await run(conn, position, (1, [first, urgent, moved, later, plain]))
    assert await candidates(2) == [urgent, first]
    assert await candidates(3) == [urgent, first, moved]


async def test_other_sessions_claim_no_job_that_is_kept_from_them(
    make: Factory, claim: Claim, conn: Connection
) -> None:
    kept, free = [await make.queued(queue="q") for _ in range(2)]
    async with conn.transaction():
        await keep_from_claims(conn, [kept])
        claimed = await claim.exchange([], types=["noop"], free=9, ahead=0)
        assert [job.number for job in claimed] == [free]
    claimed = await claim.exchange([], types=["noop"], free=9, ahead=0)
    assert [job.number for job in claimed] == [kept]


async def test_a_claim_leaves_the_jobs_that_are_set_aside(
    make: Factory, claim: Claim, monkeypatch: pytest.MonkeyPatch
) -> None:
    aside, free = [await make.queued(queue="q") for _ in range(2)]
    monkeypatch.setattr(Isolation, "aside", property(lambda _: [aside]))
    claimed = await claim.exchange([], types=["noop"], free=9, ahead=0)
    assert [job.number for job in claimed] == [free]
    monkeypatch.setattr(Isolation, "aside", property(lambda _: []))
    claimed = await claim.exchange([], types=["noop"], free=9, ahead=0)
    assert [job.number for job in claimed] == [aside]


class Apart:
    """A claim whose candidates and exchanges are given; an exchange takes the only job left."""

    def __init__(
        self,
        claim: Claim,
        patch: pytest.MonkeyPatch,
        jobs: Sequence[int],
        errors: Mapping[int, Exception] | None = None,
        taken: Sequence[int] = (),
    ) -> None:
        self.claim = claim
        self.jobs = jobs
        self.errors = errors or {}
        self.taken = taken
        self.sizes: list[tuple[int, int]] = []
        self._kept: Sequence[int] = ()
        patch.setattr(store, "claimable_jobs", self._candidates)
        patch.setattr(store, "keep_from_claims", self._keep)
        patch.setattr(claim, "_exchange", self._exchange)

    async def __call__(self, free: int, ahead: int) -> list[int]:
        """Claim apart; return the numbers of the jobs."""
        claimed = await self.claim.claim_apart(["noop"], free, ahead, FIRST)
        return [job.number for job in claimed]

    async def _candidates(self, *_: object) -> Sequence[int]:
        return self.jobs

    async def _keep(self, conn: Connection, jobs: Sequence[int]) -> None:
        self._kept = jobs

    async def _exchange(self, *given: Any) -> list[ClaimedJob]:
        self.sizes.append(given[2:])
        (job,) = set(self.jobs) - set(self._kept)
        if (error := self.errors.get(job)) is not None:
            raise error
        return [] if job in self.taken else [ClaimedJob([job, job, 1, "running", "noop"])]


FIRST = Refused("first")
REFUSAL = Refused("no")
OUTAGE = DatabaseUnreachable("away")


@pytest.mark.parametrize(("free", "ahead", "size"), [(2, 1, (1, 0)), (0, 2, (0, 1))])
async def test_jobs_are_claimed_one_by_one_until_there_are_enough(
    claim: Claim, monkeypatch: pytest.MonkeyPatch, free: int, ahead: int, size: tuple[int, int]
) -> None:
    apart = Apart(claim, monkeypatch, [1, 2, 3, 4], {1: REFUSAL})
    assert await apart(free, ahead) == [2, 3]
    assert apart.sizes == [size] * 3
    assert claim._isolation.aside == [1]


async def test_the_error_of_a_claim_is_raised_unless_single_jobs_explain_it(
    claim: Claim, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await Apart(claim, monkeypatch, [1], {1: REFUSAL})(1, 0) == [], "it is set aside"
    with pytest.raises(Refused, match="first"):
        await Apart(claim, monkeypatch, [2, 3], taken=[2, 3])(1, 0)
    assert await Apart(claim, monkeypatch, [2, 3], taken=[2])(1, 0) == [3]
    for refused in (PROBED - 1, PROBED):
        jobs = range(100 * refused, 101 * refused)
        apart = Apart(claim, monkeypatch, jobs, dict.fromkeys(jobs, REFUSAL))
        if refused < PROBED:
            assert await apart(1, 0) == []
        else:
            with pytest.raises(Refused, match="first"):
                await apart(1, 0)


async def test_an_outage_leaves_the_jobs_that_were_claimed_before_it(
    claim: Claim, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await Apart(claim, monkeypatch, [1, 2, 3], {2: OUTAGE})(3, 0) == [1]
    with pytest.raises(DatabaseUnreachable):
        await Apart(claim, monkeypatch, [1, 2, 3], {1: OUTAGE})(3, 0)


@pytest.mark.parametrize(
    ("two_steps", "done", "free", "sizes"),
    [
        (3, 1, 2, [(1, 0, 0), (0, 2, 5)]),
        (3, 1, 0, [(1, 0, 5)]),
        (3, 0, 2, [(0, 2, 5)]),
        (0, 1, 2, [(1, 2, 5)]),
    ],
)
async def test_a_claim_settles_first_only_where_both_are_to_do(
    claim: Claim,
    monkeypatch: pytest.MonkeyPatch,
    two_steps: int,
    done: int,
    free: int,
    sizes: list[tuple[int, int, int]],
) -> None:
    seen: list[tuple[int, int, int]] = []

    async def exchange(
        conn: Connection, done: Sequence[object], *, free: int, ahead: int, **_: object
    ) -> list[ClaimedJob]:
        seen.append((len(done), free, ahead))
        return []

    monkeypatch.setattr(store, "exchange", exchange)
    claim._in_two_steps = two_steps
    runs = [(Lease(1, 1, 1), dict[str, Any]())] * done
    assert await claim.exchange(runs, types=["noop"], free=free, ahead=5) == []
    assert seen == sizes


@pytest.mark.parametrize(("claims", "left"), [(True, 2), (False, 0)])
async def test_claims_are_apart_from_ends_as_long_as_that_finds_jobs(
    make: Factory, monkeypatch: pytest.MonkeyPatch, claims: bool, left: int
) -> None:
    claim = Claim(make.rt.db, make.worker, ("q",), limited=True)
    claim._in_two_steps = 3

    async def exchange(conn: Connection, done: Sequence[object], **_: object) -> list[ClaimedJob]:
        return [ClaimedJob([2, 2, 1, "running", "noop"])] if claims and not done else []

    monkeypatch.setattr(store, "exchange", exchange)
    await claim.exchange([(Lease(1, 1, 1), {})], types=["noop"], free=2, ahead=0)
    assert claim._in_two_steps == left


async def test_a_claim_in_grace_that_cannot_be_started_is_none(
    claim: Claim, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def claimed(*_: object, **__: object) -> tuple[bool, Lease]:
        return True, Lease(1, 0, 9)

    async def start(leases: Sequence[Lease]) -> list[ClaimedJob]:
        return []

    monkeypatch.setattr(claim, "_claimed_in_grace", claimed)
    monkeypatch.setattr(claim, "start", start)
    assert await claim.continue_in_grace(Lease(1, 1, 7), ends=False) == (False, None)


def test_a_claim_with_a_session_of_its_own_is_otherwise_the_same(make: Factory) -> None:
    claim = Claim(make.rt.db, make.worker, ("q",), limited=True, lease=7.0)
    other = claim.with_own_session()
    assert other._session is not claim._session
    for name in ("_worker", "_queues", "_limited", "_lease"):
        assert getattr(other, name) == getattr(claim, name)


async def test_only_jobs_that_can_be_claimed_are_kept_from_claims(
    make: Factory, owner: Actor, conn: Connection, db: Database
) -> None:
    running = (await make.running(queue="q")).number
    paused = await make.queued(queue="held")
    await make.rt.queues.pause("held", owner, "r", "noop")
    lock = "SELECT FROM draftsman.job_states WHERE number = ANY (%s) FOR UPDATE NOWAIT"
    async with conn.transaction():
        await keep_from_claims(conn, [running, paused])
        async with db.connection() as other:
            await other.execute(lock, ([running, paused],))


async def test_a_job_that_another_transaction_has_locked_is_not_waited_for(
    make: Factory, conn: Connection, db: Database
) -> None:
    locked, free = [await make.queued(queue="q") for _ in range(2)]
    lock = "SELECT FROM draftsman.job_states WHERE number = %s FOR UPDATE"
    async with db.transaction() as other:
        await other.execute(lock, (locked,))
        async with asyncio.timeout(5), conn.transaction():
            await keep_from_claims(conn, [locked, free])
