"""Rules: two workers claim, run, crash, and continue with their old claims."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from draftsman.errors import Failure, LeaseLost
from draftsman.jobs.runs.outcome import Cancel, Done, Snooze
from draftsman.jobs.runs.run import ClaimedJob
from draftsman.runtime import Runtime
from tests.core.stateful.driver import Driver
from tests.core.stateful.model.people import EVERYBODY
from tests.core.stateful.rules_submission import pick, seldom, sessions
from tests.core.stateful.world import FLEET, QUEUES, TYPES, UNHANDLED, worker_id

ENDS = ("done", "snooze", "cancel", "infra", "app", "app", "permanent", "hand_back", "canceled")
WRITES = ("checkpoint", "begin", "finish", "event", "log", "usage")
WAIT = 200.0
"""The retry-after of an overloaded server, in seconds."""


class RunRules(Driver):
    @rule(
        worker=sessions,
        done=st.booleans(),
        free=st.sampled_from([2, 1, 3, 0]),
        ahead=st.integers(0, 2),
        queues=st.sampled_from([QUEUES, QUEUES, QUEUES[::-1], QUEUES[:1]]),
        types=st.sampled_from([None, None, TYPES[1:]]),
        n=pick,
        older=st.booleans(),
    )
    def exchange(
        self,
        worker: int,
        done: bool,
        free: int,
        ahead: int,
        queues: tuple[str, ...],
        types: tuple[str, ...] | None,
        n: int,
        older: bool,
    ) -> None:
        """Settle and claim; with `older`, a batch also has the earlier runs of its jobs."""
        leases = self.leases(stale=n % 3 == 0)
        leases = sorted({leases[-1 - n % len(leases)], leases[0]}) if done and leases else []
        if older:
            leases = [other for lease in leases for other in self.leases_of_job(lease)]
        types = types or FLEET[worker]
        self.claim(worker, sorted({*leases}), queues, types=types, free=free, ahead=ahead)

    def claim(
        self, worker: int, leases: Sequence[int] = (), queues: Sequence[str] = QUEUES, **how: Any
    ) -> None:
        """Settle and claim jobs of the types of the worker, unless others are named."""
        how = {"types": FLEET[worker]} | how
        result = self.run_transaction(
            lambda: self.model.exchange(worker, [(i, i) for i in leases], queues=queues, **how),
            lambda rt: rt.claim(worker_id(worker), queues).exchange(
                [(self.works[i].lease, {"n": i}) for i in leases], **how
            ),
            lambda works: {(self.place(work.number), str(work.status)) for work in works},
            session=worker,
        )
        self.got(worker, result or [])

    @rule(first=st.integers(1, 2), second=st.integers(1, 2), queue=st.sampled_from(QUEUES))
    def both_claim(self, first: int, second: int, queue: str) -> None:
        """The second worker claims before the first commits: each job is claimed once."""
        picked = self.model.picks([queue], FLEET[0], first)
        left = self.model.picks([queue], FLEET[1], first + second)
        halves = picked, [place for place in left if place not in picked][:second]
        works = self.world.overlap(
            lambda rt: _claim(rt, 0, queue, first), lambda rt: _claim(rt, 1, queue, second)
        )
        for worker, half in enumerate(halves):
            for place in half:
                self.model.take(place, worker)
        self.compare()
        for worker, half in enumerate(halves):
            places = {self.place(work.number) for work in works[worker]}
            assert places == set(half), f"worker {worker} got {places}, the model says {half}"
            self.got(worker, works[worker])

    @rule(type=st.sampled_from([UNHANDLED, *TYPES]))
    def find_by_type(self, type: str) -> None:
        """Waiting jobs are found by type: it changes neither what is claimed nor the order."""
        self.world.find_by_type(type)
        self.compare()

    @precondition(lambda self: self.leases(stale=False, status="claimed"))
    @rule(n=pick, stale=seldom, back=st.booleans(), session=sessions)
    def start_or_give_back(self, n: int, stale: bool, back: bool, session: int) -> None:
        leases = self.leases(stale=stale, status="claimed")
        lease = leases[-1 - n % len(leases)]
        own_leases = [self.works[lease].lease]
        claim = self.world.rts[session].claim(worker_id(session), QUEUES)
        if back:
            self.run_transaction(
                lambda: self.model.release_claims(lease),
                lambda _: claim.release_claims(own_leases, "drained"),
                session=session,
            )
            return
        result = self.run_transaction(
            lambda: self.model.start(lease),
            lambda _: claim.start(own_leases),
            bool,
            session=session,
        )
        if result:
            self.works[lease] = result[0]

    @precondition(lambda self: self.works)
    @rule(n=pick, stale=seldom, kind=st.sampled_from(WRITES), session=sessions)
    def write(self, n: int, stale: bool, kind: str, session: int) -> None:
        """A run saves data; a run that lost its lease must be refused and write nothing."""
        if not (leases := self.leases(stale=stale)):
            return
        lease = leases[-1 - n % len(leases)]
        key = f"step {n % 2}"
        self.run_transaction(
            lambda: self._written(lease, kind, n, key),
            lambda rt: _write(rt, self.works[lease], kind, n, key),
            session=session,
        )

    @precondition(lambda self: self.leases(stale=False))
    @rule(
        n=pick,
        stale=seldom,
        how=st.sampled_from(ENDS),
        value=st.integers(1, 6),
        session=sessions,
        stop=seldom,
    )
    def settle(
        self, n: int, stale: bool, how: str, value: int, session: int, stop: bool = False
    ) -> None:
        """A run ends; with `stop` its job got a cancel request just before."""
        leases = self.leases(stale=stale)
        lease = leases[-1 - n % len(leases)]
        work = self.works[lease]
        root = EVERYBODY[0]
        if stop:
            self.run_transaction(
                lambda: self.model.cancel(self.model.leases[lease].job, root, force=False)[1],
                lambda rt: rt.job_control.cancel(work.number, root.actor),
                lambda job: job.requested,
                session=session,
            )
        self.run_transaction(
            lambda: self._ended(lease, how, value),
            lambda rt: _end(rt, work, how, value),
            session=session,
        )

    @rule(worker=sessions, all_of_it=st.booleans())
    def heartbeat(self, worker: int, all_of_it: bool) -> None:
        """A worker beats for its known claims, or a supposedly dead worker for all its claims."""
        owned = [place for place in sorted(self.works) if self.model.leases[place].worker == worker]
        leases = [place for place in owned if all_of_it or place in self.known[worker]]
        claim = self.world.rts[worker].claim(worker_id(worker), QUEUES)
        reported = self.run_transaction(
            lambda: self.model.beat(worker, leases),
            lambda _: claim.heartbeat([self.works[i].lease for i in leases], draining=False),
            lambda beat: (beat[0], {self._pulse(state) for state in beat[1]}),
            session=worker,
        )
        if reported is not None and not reported[0]:
            row = self.model.workers[worker]
            self.world.run(self.world.register(worker, here=row.here))
            row.registered = True
            row.beat = self.model.now
            row.unlocked = None

    @rule(worker=sessions, crash=st.booleans(), returns=st.booleans())
    def forget(self, worker: int, crash: bool, returns: bool) -> None:
        """A worker forgets its claims, and may still write; or releases the forgotten claims."""
        if crash:
            self.known[worker] = set()
        if not returns:
            return
        leases = sorted(self.known[worker])
        claim = self.world.rts[worker].claim(worker_id(worker), QUEUES)
        self.run_transaction(
            lambda: self.model.release_lost_claims(worker, leases),
            lambda _: claim.release_lost_claims([self.works[i].lease for i in leases]),
            session=worker,
        )

    def _pulse(self, state: Any) -> tuple[int, bool, bool]:
        lease = next(place for place, token in self.tokens.items() if token == state.token)
        return lease, state.owned, state.canceled

    def _written(self, lease: int, kind: str, n: int, key: str) -> Any:
        allowed = {"log": self.model.holder, "usage": self.model.records}
        job = allowed.get(kind, self.model.owns)(lease)
        if job is None:
            return "lost"
        match kind:
            case "checkpoint":
                self.model.checkpoint(job, n)
            case "begin":
                new = key not in job.steps
                job.steps.setdefault(key, None)
                return new, job.steps[key]
            case "finish" if key in job.steps and job.steps[key] is None:
                job.steps[key] = n
            case "event":
                job.job_events.append("note")
            case "log":
                job.logged.add((len(job.runs), n))
        return None

    def _ended(self, lease: int, how: str, n: int) -> str | None:
        job = self.model.holder(lease)
        if job is None or (how == "canceled" and not job.cancel):
            return None
        match how:
            case "done":
                status = self.model.end(job, "completed", "completed")
                job.result = n if status == "completed" else None
                return status
            case "snooze":
                return self.model.snooze(job, 10.0 * n)
            case "infra":
                return self.model.fail(job, "TRANSIENT_INFRA", 0.0)
            case "app":
                return self.model.fail(job, "TRANSIENT_APP", WAIT)
            case "permanent":
                return self.model.fail(job, "PERMANENT", 0.0)
            case "hand_back":
                return self.model.end(job, "resumed", "interrupted")
        return self.model.end(job, "canceled", "canceled")


async def _claim(rt: Runtime, worker: int, queue: str, free: int) -> list[ClaimedJob]:
    claim = rt.claim(worker_id(worker), [queue])
    return await claim.exchange([], types=FLEET[worker], free=free, ahead=0)


async def _write(rt: Runtime, work: ClaimedJob, kind: str, n: int, key: str) -> Any:
    saves = rt.checkpoints
    lease = work.lease
    try:
        match kind:
            case "checkpoint":
                await saves.save(lease, {"n": n})
            case "begin":
                known, new = await saves.begin_step(lease, key)
                return new, known.result
            case "finish":
                await saves.finish_step(lease, key, n)
            case "event":
                await saves.event(lease, "note", {"n": n})
            case "log":
                await saves.log(lease, n, "a line")
            case "usage":
                await rt.model_calls.record(lease, {"n": n})
    except LeaseLost:
        return "lost"
    return None


async def _end(rt: Runtime, work: ClaimedJob, how: str, n: int) -> str | None:
    match how:
        case "done":
            status = await rt.settlement.outcome(work, Done({"n": n}))
        case "snooze":
            status = await rt.settlement.outcome(work, Snooze(10.0 * n))
        case "cancel":
            status = await rt.settlement.outcome(work, Cancel("unwanted"))
        case "infra":
            status = await rt.settlement.failure(work, Failure("gone", http_status=502))
        case "app":
            failure = Failure("busy", http_status=429, retry_after=WAIT)
            status = await rt.settlement.failure(work, failure)
        case "permanent":
            status = await rt.settlement.failure(work, Failure("no", declared="PERMANENT"))
        case "hand_back":
            status = await rt.settlement.release_run(work, "shutdown")
        case _:
            status = await rt.settlement.canceled(work)
    return status
