"""Decisions of a claim loop alone: leases, outages, ends and waits, by the test's clock."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from draftsman.errors import DatabaseUnreachable, LostRace, Refused
from draftsman.jobs.job import Status
from draftsman.jobs.runs.run import ClaimedJob, Lease
from draftsman.processes import clock
from draftsman.processes.lifecycle import StopSignal
from draftsman.settings.workers import WorkerSettings
from draftsman.worker.claim_loop import CLEANUP_TIMEOUT, LOCKED_PAUSE, MAX_EXCHANGE, ClaimLoop
from tests.support.cases import cases

NOW = 100.0
POLL = 2.0


@dataclass(eq=False)
class Run:
    """A run of which only the lease counts."""

    token: int
    lease_end: float = NOW + 60
    holds_lease: bool = True
    ignores_stop: bool = False
    stops: bool = True
    """Whether a cancellation stops it: it was not stopped before."""
    result: dict[str, Any] | None = None
    stopped: list[str] = field(default_factory=list)
    apart: bool = False
    ending: bool = False
    refused: bool = False
    task: asyncio.Future[None] | None = None
    entry: None = None
    counted: list[str | None] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The name in the log."""
        return f"run {self.token}"

    @property
    def job(self) -> Any:
        """Its job and lease."""
        return SimpleNamespace(token=self.token, lease=Lease(1, 1, self.token), name="D-1")

    def cancel(self, reason: str) -> bool:
        """Note the reason."""
        self.stopped.append(reason)
        return self.stops and len(self.stopped) == 1

    def count_start(self) -> None:
        """Note it."""
        self.counted.append("started")

    def count_end(self, outcome: str | None = None) -> None:
        """Note the outcome."""
        self.counted.append(outcome)

    def settle_apart(self, on_end: object) -> None:
        """Note that it is settled apart from the others."""
        self.apart = True

    def kill(self) -> None:
        """Note it."""
        self.stopped.append("kill")

    async def abandon(self) -> None:
        """Note it."""
        self.stopped.append("abandon")


def claimed(*tokens: int, status: Status = Status.RUNNING) -> list[ClaimedJob]:
    """Return claimed jobs with these fencing tokens."""
    return [
        ClaimedJob([1, token, 1, status.value, "noop", *[None] * 22, place])
        for place, token in enumerate(tokens, 1)
    ]


class Exchanges:
    """The claims of a worker: each call returns or raises the next of some replies."""

    def __init__(self, *replies: Exception | list[ClaimedJob]) -> None:
        self.replies = list(replies)
        self.settled: list[list[int]] = []
        self.results: list[dict[str, Any]] = []
        self.wanted: list[tuple[int, int]] = []
        self.started: list[list[int]] = []
        self.released: list[list[int]] = []
        self.claimed_apart: list[Exception] = []

    def _reply(self) -> list[ClaimedJob]:
        reply = self.replies.pop(0) if self.replies else []
        if isinstance(reply, Exception):
            raise reply
        return reply

    async def exchange(
        self, done: Sequence[tuple[Lease, dict[str, Any]]], free: int, ahead: int, **_: Any
    ) -> list[ClaimedJob]:
        """Note the tokens of the settled runs, and how many jobs are wanted."""
        self.settled.append([lease.token for lease, _ in done])
        self.results += [result for _, result in done]
        self.wanted.append((free, ahead))
        return self._reply()

    async def claim_apart(
        self, types: Sequence[str], free: int, ahead: int, error: Exception
    ) -> list[ClaimedJob]:
        """Note the error and raise it, as when each of the first jobs is refused."""
        self.claimed_apart.append(error)
        raise error

    async def start(self, leases: Sequence[Lease]) -> list[ClaimedJob]:
        """Note the tokens of the started jobs."""
        self.started.append([lease.token for lease in leases])
        return self._reply()

    async def release_claims(self, leases: Sequence[Lease], reason: str) -> None:
        """Note the tokens of the released jobs."""
        self.released.append([lease.token for lease in leases])
        self._reply()


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Give the time of the clock, which the test changes."""
    times = [NOW]
    monkeypatch.setattr(clock, "now", lambda: times[0])
    return times


def make(claims: Exchanges | None = None, prefetch: int = 0, **runs: list[Run]) -> ClaimLoop:
    """Return a claim loop with these runs by their state: `running`, `done`, `apart`."""
    settings = WorkerSettings(poll=POLL, prefetch=prefetch, drain=30, abort=7)
    services = SimpleNamespace(
        claim=claims or Exchanges(), settings=SimpleNamespace(worker=settings), revive=None
    )

    async def release() -> None:
        pass

    loop = ClaimLoop(
        services=cast("Any", services),
        handlers={},
        slots=5,
        stop=StopSignal(),
        release_lost_claims=release,
        more_jobs=lambda: None,
    )
    for state, states in (("running", loop.running), ("done", loop._done), ("apart", loop.apart)):
        for run in runs.get(state, []):
            states[run.token] = cast("Any", run)
    return loop


def test_a_run_that_lost_its_lease_is_stopped_and_its_result_dropped() -> None:
    running = Run(1)
    done = Run(2)
    apart = Run(3)
    other = Run(4)
    loop = make(running=[running, other], done=[done], apart=[apart])
    for token in (1, 2, 3, 9):
        loop.lose_run(token)
    assert [run.stopped for run in (running, done, apart, other)] == [["lost"], [], ["lost"], []]
    assert [lease.token for lease in loop.leases()] == [1, 4, 3]


def test_only_the_leases_that_a_heartbeat_renewed_get_longer() -> None:
    runs = [Run(token) for token in range(1, 7)]
    loop = make(running=runs[:2], done=runs[2:4], apart=runs[4:])
    loop.renew_leases({1, 3, 5}, NOW + 99)
    assert [run.lease_end for run in runs] == [NOW + 99, NOW + 60] * 3


def test_runs_are_stopped_before_their_leases_end_and_results_dropped_at_the_end() -> None:
    due = Run(1, NOW + 2)
    later = Run(2, NOW + 2.1)
    parked = Run(3, NOW - 9, holds_lease=False)
    stopped = Run(4, NOW, stops=False)
    ended = Run(5, NOW)
    ending = Run(6, NOW + 1)
    refused = Run(7, NOW)
    apart = [refused, Run(8, NOW, stops=False), Run(9, NOW + 1)]
    loop = make(running=[due, later, parked, stopped], done=[ended, ending], apart=apart)
    assert loop.end_leases(NOW, 2) == ["run 1", "run 5", "run 7"], "each is named once"
    assert [run.token for run in (due, later, parked, stopped, refused) if run.stopped] == [1, 4, 7]
    assert list(loop._done) == [6]
    assert not loop.end_leases(NOW, 2)
    assert loop.end_leases(NOW + 1, 2) == ["run 2", "run 6", "run 9"]


def test_a_handler_that_goes_on_after_the_end_of_its_lease_is_named() -> None:
    runs = [Run(1, NOW, ignores_stop=True), Run(2, NOW), Run(3, NOW + 0.1, ignores_stop=True)]
    assert make(running=runs).outlived(NOW) == ["run 1"]


def test_the_earliest_end_of_a_lease_leaves_parked_runs_out() -> None:
    runs = [Run(1, NOW + 9), Run(2, NOW + 5), Run(3, NOW, holds_lease=False)]
    assert make(running=runs).lease_end == NOW + 5
    assert make(running=runs[2:]).lease_end == math.inf


async def test_a_loop_is_stalled_after_an_error_or_a_long_exchange(time: list[float]) -> None:
    loop = make()
    time[0] = NOW + POLL + MAX_EXCHANGE
    assert (loop.silence, loop.is_stalled) == (POLL + MAX_EXCHANGE, False)
    time[0] += 0.1
    assert loop.is_stalled
    loop = make(Exchanges(DatabaseUnreachable("away")))
    assert not await loop._outage.guard(loop._turn)
    assert loop.is_stalled


def test_a_run_leaves_its_slot_when_it_ends() -> None:
    completed = Run(1, result={})
    failed = Run(2)
    refused = Run(3)
    loop = make(running=[completed, failed, Run(4)], apart=[refused])
    assert loop.free == 2
    for run in (completed, failed, refused):
        loop._wake.clear()
        loop._ended(cast("Any", run))
        assert loop._wake.is_set()
    assert (list(loop.running), list(loop._done), list(loop.apart)) == ([4], [1], [])
    assert loop.free == 4
    assert (completed.counted, failed.counted) == ([], [None]), "once it is settled"


def test_a_run_whose_end_is_refused_leaves_its_slot() -> None:
    refused = Run(1)
    ended = Run(2)
    loop = make(running=[refused])
    loop._leave_slot(cast("Any", ended))
    assert not loop.apart
    assert not loop._wake.is_set()
    loop._leave_slot(cast("Any", refused))
    assert (loop.free, list(loop.apart), loop._wake.is_set()) == (5, [1], True)
    loop._wake.clear()
    loop._settled_apart(cast("Any", refused))
    assert (list(loop.apart), loop._wake.is_set()) == ([], True)
    assert refused.counted == [None]


@pytest.mark.parametrize("poll", [POLL, LOCKED_PAUSE / 2])
async def test_a_run_that_was_not_settled_is_settled_again_soon(
    monkeypatch: pytest.MonkeyPatch, poll: float
) -> None:
    waits = list[float]()

    async def wait(seconds: float) -> None:
        waits.append(seconds)

    for loop in (make(), make(done=[Run(1)])):
        monkeypatch.setattr(loop, "_settings", WorkerSettings(poll=poll))
        monkeypatch.setattr(loop, "_wait_for_wake", wait)
        await loop._pause()
    assert waits == [poll, min(poll, LOCKED_PAUSE)]


async def test_a_wait_ends_with_a_wake_or_its_time_and_leaves_no_timer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    timers = list[asyncio.TimerHandle]()
    running = asyncio.get_running_loop()
    call_later = running.call_later

    def note(*args: Any) -> asyncio.TimerHandle:
        timers.append(call_later(*args))
        return timers[-1]

    loop = make()
    with monkeypatch.context() as patch:
        patch.setattr(running, "call_later", note)
        loop.wake()
        async with asyncio.timeout(5):
            await loop._wait_for_wake(60)
        assert not timers, "it was awake"
        async with asyncio.timeout(5):
            waiting = asyncio.ensure_future(loop._wait_for_wake(60))
            await asyncio.sleep(0)
            assert (len(timers), waiting.done()) == (1, False)
            loop.wake()
            await waiting
        assert timers[0].cancelled()
        assert not loop._wake.is_set()
        await loop._wait_for_wake(0)
        assert len(timers) == 2


OUTAGE = DatabaseUnreachable("away")
REFUSAL = Refused("no")
CONFLICT = LostRace("another session has it")
BUG = RuntimeError("a bug")


@cases("error", [OUTAGE, REFUSAL, CONFLICT, BUG], ids=repr)
async def test_an_exchange_that_only_claims_fails_as_a_whole(error: Exception) -> None:
    """Before, the jobs of a refused claim are tried one by one."""
    claims = Exchanges(error)
    loop = make(claims)
    with pytest.raises(type(error)):
        await loop._exchange(1, 0)
    assert claims.claimed_apart == ([error] if error in (REFUSAL, BUG) else [])
    assert loop.may_have_lost_claims is bool(claims.claimed_apart), "it may be on its way"


async def test_runs_that_an_outage_kept_from_being_settled_are_settled_together() -> None:
    claims = Exchanges(OUTAGE)
    runs = [Run(1), Run(2)]
    loop = make(claims, done=runs)
    with pytest.raises(DatabaseUnreachable):
        await loop._exchange(1, 0)
    await loop._exchange(1, 0)
    assert claims.settled == [[1, 2], [1, 2]]
    assert not any(run.apart for run in runs)


@pytest.mark.parametrize("error", [REFUSAL, BUG], ids=repr)
@pytest.mark.parametrize("count", [1, 2])
async def test_runs_whose_batch_is_refused_are_settled_apart(
    caplog: pytest.LogCaptureFixture, error: Exception, count: int
) -> None:
    """The reply may be lost, and claims with it: they are released before the next exchange."""
    runs = [Run(1), Run(2)][:count]
    loop = make(Exchanges(error), done=runs)
    assert await loop._exchange(1, 0) == []
    assert all(run.apart for run in runs)
    assert (list(loop.apart), list(loop._done)) == ([run.token for run in runs], [])
    assert loop.may_have_lost_claims
    assert loop._wake.is_set(), "the slots that the refused exchange left free are filled at once"
    together = [record for record in caplog.records if "together" in record.getMessage()]
    assert len(together) == (count > 1)


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Give the tokens of the started jobs, which take a slot."""
    tokens = list[int]()

    def start(self: ClaimLoop, job: ClaimedJob) -> None:
        tokens.append(job.token)
        self.running[job.token] = cast("Any", Run(job.token))

    monkeypatch.setattr(ClaimLoop, "_start", start)
    return tokens


def count_fills(loop: ClaimLoop, filled: list[int]) -> ClaimLoop:
    """Note each notice that all slots were filled."""
    loop._more_jobs = lambda: filled.append(loop.free)
    return loop


async def test_a_turn_claims_again_while_all_free_slots_are_filled(starts: list[int]) -> None:
    filled = list[int]()
    claims = Exchanges(claimed(1, 2, 3, 4, 5))
    await count_fills(make(claims), filled)._turn()
    assert (claims.wanted, starts, filled) == ([(5, 0)], [1, 2, 3, 4, 5], [0])

    claims, filled[:] = Exchanges(claimed(6, 7)), []
    await count_fills(make(claims), filled)._turn()
    assert (claims.wanted, filled) == ([(5, 0)], [])

    claims = Exchanges(claimed(8, status=Status.CLAIMED), claimed(9, status=Status.CLAIMED))
    loop = count_fills(make(claims, prefetch=2, running=[Run(n) for n in range(20, 25)]), filled)
    await loop._turn()
    assert claims.wanted == [(0, 2), (0, 1)]
    assert [lease.token for lease in loop.ahead()] == [8, 9]


async def test_a_turn_of_a_full_worker_settles_and_then_waits(starts: list[int]) -> None:
    running = [Run(n) for n in range(20, 25)]
    claims = Exchanges()
    await make(claims, running=running)._turn()
    assert claims.wanted == []
    loop = make(claims, running=running, done=[Run(1)])
    await loop._turn()
    assert (claims.wanted, claims.settled) == ([(0, 0)], [[1]])


async def test_runs_that_end_at_once_are_settled_together(
    monkeypatch: pytest.MonkeyPatch, time: list[float]
) -> None:
    claims = Exchanges(claimed(1, 2, 3, 4, 5))
    tasks = list[asyncio.Task[None]]()
    loop = make(claims)
    waits = list[float]()
    sleep = asyncio.sleep

    def start(job: ClaimedJob) -> None:
        run = Run(job.token, result={})
        loop.running[job.token] = cast("Any", run)

        async def end() -> None:
            loop._ended(cast("Any", run))

        tasks.append(asyncio.create_task(end()))

    async def note(seconds: float) -> None:
        waits.append(seconds)
        await sleep(0)

    monkeypatch.setattr(loop, "_start", start)
    monkeypatch.setattr(asyncio, "sleep", note)
    await loop._turn()
    assert (claims.settled, waits) == ([[], [1, 2, 3, 4, 5]], [0])


async def test_a_stopped_loop_claims_nothing(starts: list[int]) -> None:
    claims = Exchanges()
    loop = make(claims)
    loop._stop.set()
    await loop._turn()
    assert claims.wanted == []


async def test_replies_of_an_exchange_are_settled_started_or_kept(starts: list[int]) -> None:
    completed = claimed(1, status=Status.COMPLETED)
    ahead = claimed(3, status=Status.CLAIMED)
    settled = Run(1)
    skipped = Run(4)
    loop = make(Exchanges([*completed, *claimed(2), *ahead]), done=[settled, skipped])
    await loop._exchange(1, 1)
    assert (settled.counted, skipped.counted) == ([Status.COMPLETED], [])
    assert (list(loop._done), starts) == ([4], [2])
    assert (loop.settlements, loop.skipped_settlements) == (2, 1)
    assert [lease.token for lease in loop.ahead()] == [3]


async def test_jobs_claimed_ahead_start_in_free_slots(starts: list[int]) -> None:
    ahead = claimed(1, 2, 3, status=Status.CLAIMED)
    claims = Exchanges(claimed(1, 2))
    full = [Run(n) for n in range(20, 25)]
    loop = make(claims, running=full)
    loop._ahead = list(ahead)
    await loop._start_ahead()
    assert claims.started == []
    for token in (20, 21):
        loop.running.pop(token)
    await loop._start_ahead()
    assert (claims.started, starts) == ([[1, 2]], [1, 2])
    assert [lease.token for lease in loop.ahead()] == [3]
    await make(claims)._start_ahead()
    assert claims.started == [[1, 2]]


async def test_a_job_claimed_ahead_that_cannot_start_is_left_to_the_release(
    starts: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    claims = Exchanges(REFUSAL, claimed(1), REFUSAL)
    loop = make(claims)
    loop._ahead = claimed(1, 2, status=Status.CLAIMED)
    await loop._start_ahead()
    assert (claims.started, starts, loop.ahead()) == ([[1, 2], [1], [2]], [1], [])
    assert "cannot be started" in caplog.text


@pytest.mark.parametrize("before", [[], [REFUSAL]], ids=["together", "alone"])
async def test_an_outage_keeps_the_jobs_claimed_ahead(
    starts: list[int], before: list[Exception]
) -> None:
    loop = make(Exchanges(*before, OUTAGE))
    loop._ahead = claimed(1, 2, status=Status.CLAIMED)
    with pytest.raises(DatabaseUnreachable):
        await loop._start_ahead()
    assert (starts, [lease.token for lease in loop.ahead()]) == ([], [1, 2])


@pytest.fixture
def finishes(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Give the seconds of each wait for the end of the runs."""
    waits = list[float]()

    async def finish(self: ClaimLoop, seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr(ClaimLoop, "_finish", finish)
    return waits


async def test_a_shutdown_stops_runs_step_by_step(finishes: list[float]) -> None:
    run = Run(1)
    refused = Run(2)
    await make(running=[run], apart=[refused])._drain()
    assert finishes == [30, 7, 7]
    assert (run.stopped, refused.stopped) == (["shutdown", "kill", "abandon"], ["shutdown"])


async def test_a_shutdown_waits_for_a_run_that_ends_its_processes(finishes: list[float]) -> None:
    await make(running=[Run(1), Run(2, ending=True)])._drain()
    assert finishes == [30, 7, 7, CLEANUP_TIMEOUT]


@pytest.mark.parametrize(
    ("errors", "calls"), [([], 1), ([OUTAGE], 2), ([OUTAGE] * 3, 2)], ids=["0", "1", "3"]
)
async def test_a_shutdown_releases_the_jobs_claimed_ahead(
    finishes: list[float], errors: list[Exception], calls: int
) -> None:
    claims = Exchanges(*errors)
    loop = make(claims)
    await loop._drain()
    assert claims.released == []
    loop._ahead = claimed(1, 2, status=Status.CLAIMED)
    await loop._drain()
    assert claims.released == [[1, 2]] * calls
    assert loop.ahead() == []


async def test_a_shutdown_waits_for_refused_ends_as_long_as_for_aborted_runs() -> None:
    never = asyncio.get_running_loop().create_future()
    ended = asyncio.get_running_loop().create_future()
    ended.set_result(None)
    runs = [Run(1, task=never), Run(2), Run(3, task=ended)]
    loop = make(apart=runs)
    loop._settings = WorkerSettings(poll=POLL, abort=0)
    async with asyncio.timeout(5):
        await loop._leave_refused()
        await make(apart=[Run(4)])._leave_refused()
    assert [run.stopped for run in runs] == [["shutdown"]] * 3


async def test_the_end_of_a_refused_run_is_awaited() -> None:
    task = asyncio.ensure_future(asyncio.sleep(0))
    await make(apart=[Run(1, task=task)])._leave_refused()
    assert task.done()


@pytest.mark.parametrize(
    ("runs", "waits"),
    [
        ({}, []),
        ({"apart": [Run(1, refused=True)]}, []),
        ({"apart": [Run(1)]}, [2, 2, 1]),
        ({"apart": [Run(1, refused=True), Run(2)]}, [2, 2, 1]),
        ({"done": [Run(1)]}, [2, 2, 1]),
        ({"running": [Run(1)]}, [2, 2, 1]),
    ],
    ids=["none", "refused", "apart", "apart and refused", "done", "running"],
)
async def test_the_end_of_runs_is_awaited_for_some_seconds(
    monkeypatch: pytest.MonkeyPatch, runs: dict[str, Any], waits: list[float]
) -> None:
    times = [NOW]
    waited = list[float]()
    loop = make(**runs)

    async def wait(seconds: float) -> None:
        assert len(waited) < 9, "the wait never ends"
        waited.append(seconds)
        times[0] += seconds

    monkeypatch.setattr(
        "draftsman.worker.claim_loop.time", SimpleNamespace(monotonic=lambda: times[0])
    )
    monkeypatch.setattr(loop, "_wait_for_wake", wait)
    await loop._finish(5)
    assert waited == waits
    await loop._finish(0)
    assert waited == waits


async def test_finished_runs_are_settled_and_nothing_is_claimed_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    claims = Exchanges(claimed(1, status=Status.COMPLETED))
    loop = make(claims, done=[Run(1)])

    async def wait(_: float) -> None:
        raise AssertionError("nothing is left to wait for")

    monkeypatch.setattr(loop, "_wait_for_wake", wait)
    await loop._finish(5)
    assert (claims.settled, claims.wanted) == ([[1]], [(0, 0)])
    await loop._settle_done()
    assert claims.wanted == [(0, 0)]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Give the names of the calls of a loop; a pause takes 9 s, and the second ends the loop."""
    names = list[str]()

    def stop(loop: ClaimLoop, name: str) -> None:
        names.append(name)
        assert len(names) < 20, "the loop never ends"
        if names.count(name) == 2:
            loop._stop.set()

    async def turn(self: ClaimLoop) -> None:
        names.append("turn")

    async def pause(self: ClaimLoop) -> None:
        stop(self, "pause")

    async def drain(self: ClaimLoop) -> None:
        names.append("drain")

    monkeypatch.setattr(ClaimLoop, "_turn", turn)
    monkeypatch.setattr(ClaimLoop, "_pause", pause)
    monkeypatch.setattr(ClaimLoop, "_drain", drain)
    return names


async def test_a_loop_takes_turns_until_it_is_stopped(time: list[float], calls: list[str]) -> None:
    loop = make()
    time[0] += 9
    await loop.run()
    assert calls == ["turn", "pause", "turn", "pause", "drain"]
    assert (loop.silence, loop.may_have_lost_claims) == (0, False)


@pytest.mark.parametrize("revives", [True, False])
async def test_a_loop_waits_after_an_outage_and_may_have_lost_claims(
    monkeypatch: pytest.MonkeyPatch, time: list[float], calls: list[str], revives: bool
) -> None:
    loop = make()

    async def turn() -> None:
        calls.append("turn")
        raise OUTAGE

    async def wait(seconds: float) -> bool:
        calls.append(f"wait {seconds:g}")
        assert len(calls) < 20, "the loop never ends"
        if calls.count(f"wait {seconds:g}") == 2:
            loop._stop.set()
        return True

    async def revive() -> None:
        calls.append("revive")
        raise OUTAGE

    monkeypatch.setattr(loop, "_turn", turn)
    monkeypatch.setattr(loop._stop, "wait", wait)
    if revives:
        cast("Any", loop._services).revive = revive
    time[0] += 9
    await loop.run()
    attempt = ["turn", "revive", "wait 2"] if revives else ["turn", "wait 2"]
    assert calls == [*attempt, *attempt, "drain"]
    assert (loop.silence, loop.may_have_lost_claims) == (9, True)


async def test_lost_claims_are_released_before_each_turn() -> None:
    claims = Exchanges()
    released = list[int]()
    loop = make(claims)

    async def release() -> None:
        released.append(len(claims.wanted))

    loop._release_lost_claims = release
    await loop._turn()
    await loop._turn()
    assert released == [0, 1]


async def test_a_lease_counts_from_the_call_that_claimed_it(
    monkeypatch: pytest.MonkeyPatch, time: list[float]
) -> None:
    started = dict[int, object]()

    class Started(Run):
        def start(self, *ends: object) -> None:
            started[self.token] = ends

    monkeypatch.setattr(
        "draftsman.worker.claim_loop.Execution", lambda job, **others: Started(job.token)
    )
    claims = Exchanges([*claimed(1), *claimed(2, status=Status.CLAIMED)], claimed(2))
    loop = make(claims)
    cast("Any", loop)._handlers = {"noop": None}
    lease = loop._settings.lease
    time[0] = 500
    await loop._exchange(1, 1)
    time[0] = 600
    await loop._start_ahead()
    assert [run.lease_end for run in loop.running.values()] == [500 + lease, 600 + lease]
    assert started == dict.fromkeys((1, 2), (loop._ended, loop._leave_slot))
    assert [cast("Any", run).counted for run in loop.running.values()] == [["started"]] * 2


async def test_a_result_is_sent_with_its_lease() -> None:
    claims = Exchanges()
    await make(claims, done=[Run(1, result={"n": 1}), Run(2)])._exchange(0, 0)
    assert (claims.settled, claims.results) == ([[1, 2]], [{"n": 1}, {}])


async def test_a_turn_starts_the_jobs_claimed_ahead_before_it_claims(starts: list[int]) -> None:
    claims = Exchanges(claimed(1))
    loop = make(claims)
    loop._ahead = claimed(1, status=Status.CLAIMED)
    await loop._turn()
    assert (claims.started, starts, claims.wanted) == ([[1]], [1], [(4, 0)])
