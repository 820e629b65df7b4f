"""Where claims begin, by the test's clock, against a model of a queue's order."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftsman.jobs.job import Status
from draftsman.jobs.runs.run import ClaimedJob, Lease
from draftsman.worker.claim_cursor import MAX_INTERVAL, SHARE, ClaimCursor
from draftsman.worker.claim_loop import ClaimLoop
from tests.core.worker.test_claim_loop_rules import Exchanges, make, time

__all__ = ["time"]
QUICK = 0.001
SLOW = MAX_INTERVAL * SHARE * 2
"""Seconds of a claim from the start: the next is due soon, or after `MAX_INTERVAL`."""
Place = tuple[int, int, int]
"""The order of a job: its negative priority, position and number."""


@dataclass
class Queue(Exchanges):
    """A queue whose claims take the test's time, in the order of the claim."""

    time: list[float]
    took: float = QUICK
    places: dict[int, Place] = field(default_factory=dict)
    """All jobs, also those that were claimed."""
    since: dict[int, float] = field(default_factory=dict)
    """When the jobs that wait came to their place, or were unlocked."""
    locked: set[int] = field(default_factory=set)
    begun: list[int | None] = field(default_factory=list)
    """The jobs after which the claims began."""
    passed: float = 0.0
    """The longest time for which a claim took later jobs instead of one that waited."""

    def add(self, priority: int, position: int) -> int:
        """Add a job."""
        number = len(self.places) + 1
        self.places[number] = (-priority, position, number)
        self.since[number] = self.time[0]
        return number

    def unlock(self) -> None:
        """Unlock all jobs."""
        for number in self.locked & self.since.keys():
            self.since[number] = self.time[0]
        self.locked = set()

    async def exchange(
        self,
        done: Sequence[tuple[Lease, dict[str, Any]]],
        free: int,
        ahead: int,
        after: int | None = None,
        **_: Any,
    ) -> list[ClaimedJob]:
        """Claim like the database."""
        self.begun.append(after)
        waiting = sorted(self.since.keys() - self.locked, key=self.places.__getitem__)
        found = [
            number
            for number in waiting
            if after is None
            or (
                self.places[number][0] == self.places[after][0]
                and self.places[number] > self.places[after]
            )
        ][: free + ahead]
        if found:
            left = waiting[: waiting.index(found[-1])]
            times = [self.time[0] - self.since[number] for number in left if number not in found]
            self.passed = max(self.passed, *times, 0.0)
        for number in found:
            del self.since[number]
        self.time[0] += self.took
        return [job(number, place) for place, number in enumerate(found, 1)]


def job(number: int, place: int | None, status: Status = Status.RUNNING) -> ClaimedJob:
    """Return a claimed job."""
    return ClaimedJob([number, number, 1, status.value, "noop", *[None] * 22, place])


@pytest.fixture
def queue(time: list[float]) -> Queue:
    return Queue(time)


def loop_of(queue: Queue, patch: pytest.MonkeyPatch) -> ClaimLoop:
    """Return a loop that claims from a queue and starts nothing."""
    patch.setattr(ClaimLoop, "_start", lambda *_: None)
    return make(queue)


async def claim(loop: ClaimLoop, free: int) -> list[int]:
    return [job.number for job in await loop._exchange(free, 0)]


async def test_a_claim_begins_after_the_last_while_claims_are_filled(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = loop_of(queue, monkeypatch)
    queue.took = SLOW
    for position in range(10):
        queue.add(0, position)
    assert await claim(loop, 2) == [1, 2]
    urgent = queue.add(5, 0)
    assert await claim(loop, 3) == [3, 4, 5]
    assert await claim(loop, 2) == [6, 7]
    assert await claim(loop, 5) == [8, 9, 10, urgent], "the rest is found from the start"
    queue.add(0, 99)
    assert await claim(loop, 2) == [12]
    assert queue.begun == [None, 2, 5, 7, None, None]


async def test_claims_from_the_start_take_a_share_of_the_time(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = loop_of(queue, monkeypatch)
    for position in range(9):
        queue.add(0, position)
    for took, interval in ((QUICK, QUICK / SHARE), (SLOW, MAX_INTERVAL)):
        queue.took = took
        await claim(loop, 1)
        queue.time[0] += interval * 0.99
        await claim(loop, 1)
        queue.time[0] += interval * 0.02
    await claim(loop, 1)
    assert queue.begun == [None, 1, None, 3, None]


async def test_a_job_that_was_handed_over_is_no_place_in_the_queue(
    time: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ClaimLoop, "_start", lambda *_: None)
    claims = Exchanges(
        [job(8, None, Status.COMPLETED), job(1, 1), job(7, None)], [job(7, None)], [job(2, 1)]
    )
    begun = list[int | None]()
    exchange = claims.exchange

    async def note(done: Any, after: int | None, **wanted: Any) -> list[ClaimedJob]:
        begun.append(after)
        time[0] += SLOW
        return await exchange(done, **wanted)

    monkeypatch.setattr(claims, "exchange", note)
    loop = make(claims)
    for free in (2, 1, 1):
        await loop._exchange(free, 0)
    assert begun == [None, 1, None]


def test_only_the_claim_from_the_cursor_fell_short() -> None:
    cursor = ClaimCursor()
    seen = []
    for found in ([job(1, 1)], [], [job(2, 1)]):
        began = cursor.start(0.0)
        cursor.move(found, 1, SLOW)
        seen.append((began, cursor.fell_short))
    assert seen == [(None, False), (1, True), (None, False)]


STEP = st.one_of(
    st.tuples(st.just("add"), st.integers(0, 2), st.integers(0, 30)),
    st.tuples(st.just("lock"), st.integers(1, 60)),
    st.tuples(st.just("unlock")),
    st.tuples(st.just("wait"), st.floats(0, MAX_INTERVAL)),
    st.tuples(st.just("claim"), st.integers(1, 4), st.sampled_from((QUICK, SLOW / 4, SLOW))),
)


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30)), max_size=30),
    st.lists(STEP, max_size=60),
)
def test_no_claim_is_short_and_no_job_is_passed_for_long(
    jobs: list[tuple[int, int]], steps: list[tuple[Any, ...]]
) -> None:
    """Whatever comes before the cursor meanwhile: urgent, moved or unlocked jobs."""
    with pytest.MonkeyPatch.context() as patch:
        queue = Queue([0.0])
        patch.setattr("draftsman.processes.clock.now", lambda: queue.time[0])
        loop = loop_of(queue, patch)
        for priority, position in jobs:
            queue.add(priority, position)
        claimed = list[int]()
        for step, *values in steps:
            if step == "add":
                queue.add(*values)
            elif step == "lock":
                queue.locked |= {*values} & queue.since.keys()
            elif step == "unlock":
                queue.unlock()
            elif step == "wait":
                queue.time[0] += values[0]
            else:
                free, queue.took = values
                waiting = len(queue.since.keys() - queue.locked)
                found = asyncio.run(claim(loop, free))
                assert len(found) == min(free, waiting)
                claimed += found
        assert len(claimed) == len({*claimed})
        assert queue.passed <= MAX_INTERVAL + SLOW
