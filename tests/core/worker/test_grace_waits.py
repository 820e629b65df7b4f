"""How a claim loop waits for the answer in a grace period, by the test's clock."""

from __future__ import annotations

import asyncio
from asyncio import timeout
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from draftsman.errors import DatabaseUnreachable
from draftsman.jobs.runs.run import ClaimedJob, Lease
from draftsman.processes import clock
from draftsman.worker.claim_loop import ClaimLoop
from tests.core.worker.test_claim_loop_rules import NOW, POLL, Exchanges, Run, claimed, make

PARKED = Lease(1, 1, 1)
WAITS = (True, None)


class Answers(Exchanges):
    """The replies about the answer, one for each look."""

    def __init__(self, *looks: tuple[bool, ClaimedJob | None] | Exception) -> None:
        super().__init__()
        self.looks = list(looks)
        self.ends: list[bool] = []
        self.left: list[Lease] = []
        self.locked: list[bool] = []
        self.loop: ClaimLoop | None = None

    async def continue_in_grace(
        self, parked: Lease, *, ends: bool
    ) -> tuple[bool, ClaimedJob | None]:
        """Note whether this is the last look, and give the next reply."""
        assert parked == PARKED
        assert self.loop is not None
        self.ends.append(ends)
        assert len(self.ends) < 20, "the wait never ends"
        self.locked.append(self.loop.exchange_lock.locked())
        look = self.looks.pop(0) if self.looks else WAITS
        if isinstance(look, Exception):
            raise look
        return look

    async def leave_grace(self, parked: Lease) -> None:
        """Note it."""
        self.left.append(parked)


class Wait:
    """A wait of a parked run, whose clock moves by each wait for the answer."""

    def __init__(self, patch: pytest.MonkeyPatch, answers: Answers) -> None:
        self.answers = answers
        self.run = Run(1)
        self.loop = answers.loop = make(answers, running=[self.run])
        self.waits: list[float] = []
        self.counted: list[tuple[int, str]] = []
        self.now = NOW
        patch.setattr(
            "draftsman.worker.claim_loop.time", SimpleNamespace(monotonic=lambda: self.now)
        )
        patch.setattr(clock, "now", lambda: self.now)
        patch.setattr(asyncio, "timeout", self._timeout)

    @asynccontextmanager
    async def _timeout(self, seconds: float) -> AsyncIterator[None]:
        self.waits.append(seconds)
        self.now += seconds
        raise TimeoutError
        yield

    def poll(self) -> bool:
        """Let the run wait on."""
        return True

    async def result(
        self, seconds: float = 5, on_poll: Callable[[], bool] | None = None
    ) -> int | None:
        """Return the token of the run that goes on, None after the period."""
        run: Any = SimpleNamespace(
            job=SimpleNamespace(token=1, lease=PARKED),
            lease_end=0.0,
            count_end=lambda outcome: self.counted.append((run.job.token, outcome)),
            count_start=lambda: self.counted.append((run.job.token, "started")),
        )
        self.state = run
        async with timeout(10):
            job = await self.loop._continue_in_grace(
                cast("Any", run), seconds, on_poll or self.poll
            )
        assert job is None or run.job is job
        assert not self.loop.in_grace
        assert all(self.answers.locked), "else the claim would count as lost"
        return None if job is None else job.token


async def test_an_answer_starts_the_next_run_in_the_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    wait = Wait(monkeypatch, Answers(WAITS, (False, claimed(9)[0])))
    assert await wait.result() == 9
    running: Any = wait.loop.running
    assert running == {9: wait.run}
    assert wait.state.lease_end == NOW + POLL + wait.loop._settings.lease
    assert wait.counted == [(1, "waiting"), (9, "started")]
    assert (wait.waits, wait.answers.ends, wait.answers.left) == ([POLL], [False, False], [])


async def test_a_run_looks_a_last_time_at_the_end_of_the_period(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wait = Wait(monkeypatch, Answers())
    assert await wait.result() is None
    assert wait.waits == [POLL, POLL, 1]
    assert wait.answers.ends == [False, False, False, True]
    assert wait.answers.left == []
    wait = Wait(monkeypatch, Answers())
    assert await wait.result(0.5) is None
    assert (wait.waits, wait.answers.ends) == ([0.5], [False, True])


async def test_an_answer_at_the_last_look_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    wait = Wait(monkeypatch, Answers((False, claimed(9)[0])))
    assert await wait.result(0) == 9
    assert wait.answers.ends == [True]


async def test_a_run_whose_job_no_longer_waits_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    wait = Wait(monkeypatch, Answers((False, None), (False, None)))
    assert await wait.result() is None
    assert wait.answers.ends == [False, True]


async def test_a_shutdown_ends_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    wait = Wait(monkeypatch, Answers())
    wait.loop._stop.set()
    assert await wait.result() is None
    assert wait.answers.ends == [True]


async def test_an_agent_that_has_ended_leaves_the_period(monkeypatch: pytest.MonkeyPatch) -> None:
    wait = Wait(monkeypatch, Answers())
    assert await wait.result(on_poll=lambda: False) is None
    assert (wait.answers.left, wait.answers.ends, wait.waits) == ([PARKED], [False], [])


async def test_an_outage_may_lose_the_claim_of_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    wait = Wait(monkeypatch, Answers(DatabaseUnreachable("away"), (False, claimed(9)[0])))
    assert await wait.result() == 9
    assert wait.loop.may_have_lost_claims
    wait = Wait(monkeypatch, Answers())
    assert await wait.result() is None
    assert not wait.loop.may_have_lost_claims


async def test_an_answer_wakes_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each wake is one look: the next wait begins anew."""
    answers = Answers(WAITS, WAITS, (False, claimed(9)[0]))
    wait = Wait(monkeypatch, answers)
    monkeypatch.undo()
    polled = asyncio.Queue[None]()

    def poll() -> bool:
        polled.put_nowait(None)
        return True

    async with asyncio.timeout(5):
        wait.loop._settings = wait.loop._settings.model_copy(update={"poll": 60.0})
        going = asyncio.ensure_future(wait.result(60, poll))
        await polled.get()
        wait.loop.wake()
        await polled.get()
        for _ in range(5):
            await asyncio.sleep(0)
        assert not going.done()
        wait.loop.wake_grace()
        assert await going == 9
    assert answers.ends == [False] * 3


async def test_a_canceled_wait_leaves_the_period(monkeypatch: pytest.MonkeyPatch) -> None:
    wait = Wait(monkeypatch, Answers())
    monkeypatch.undo()
    polled = asyncio.Event()

    def poll() -> bool:
        polled.set()
        return True

    going = asyncio.ensure_future(wait.result(60, poll))
    async with asyncio.timeout(5):
        await polled.wait()
    going.cancel()
    await asyncio.wait({going}, timeout=5)
    assert going.cancelled()
    assert wait.answers.left == [PARKED]
    assert not wait.loop.in_grace
