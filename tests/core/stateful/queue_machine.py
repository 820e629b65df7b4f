"""The queues with limits, workflows and two workers that crash: model and database agree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from draftsman.errors import Failure
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.jobs.runs.outcome import Done, Snooze
from draftsman.jobs.runs.run import ClaimedJob, LeaderTerm
from draftsman.jobs.runs.store.claim import exchange
from draftsman.questions.question_spec import QuestionSpec
from draftsman.questions.response import Response
from draftsman.runtime import Runtime
from tests.core.stateful.model.groups import GROUPS
from tests.core.stateful.model.queues import ENDED, UNKNOWN, WAITING, Request
from tests.core.stateful.model.workflows import ATTEMPTS, LIVE
from tests.core.stateful.queue_calls import BEGINNINGS, CALLS
from tests.core.stateful.queue_driver import OWNER
from tests.core.stateful.queue_fan_out import FanOutDriver
from tests.core.stateful.world import QUEUES, TYPES, worker_id
from tests.support.server import Server

SLEEP: Final = 25.0
"""Seconds that a snoozed job waits."""
_SHAPES: Final[dict[str, Callable[[int], list[tuple[int, ...]]]]] = {
    "apart": lambda size: [()] * size,
    "chain": lambda size: [(index - 1,) if index else () for index in range(size)],
    "fan": lambda size: [(0,) if index else () for index in range(size)],
    "join": lambda size: [*[()] * (size - 1), tuple(range(size - 1))],
}
"""The parents of each job of a batch."""


class QueueMachine(FanOutDriver):
    """Any call on the queues, from two processes whose connections may break.

    A single rule makes all calls, because hypothesis leaves most of many rules out of an example.
    """

    beginnings: st.SearchStrategy[Any] = BEGINNINGS

    @initialize(beginning=st.runner().flatmap(lambda machine: machine.beginnings))
    def configure(
        self, beginning: tuple[str, dict[str, Any], tuple[str, dict[str, Any]] | None]
    ) -> None:
        mix, settings, call = beginning
        self.calls = CALLS[mix]
        self.change_limits(settings)
        if call is not None:
            self.agrees()
            self.make_call(*call)

    @rule(call=st.runner().flatmap(lambda machine: machine.calls))
    def make(self, call: tuple[str, dict[str, Any]]) -> None:
        self.make_call(*call)

    def make_call(self, name: str, arguments: dict[str, Any]) -> None:
        getattr(self, name)(**arguments)

    def change_limits(self, settings: dict[str, Any]) -> None:
        self.set_limits(settings)

    def break_next_connection(self, cut: str) -> None:
        self.cut = cut

    def submit(
        self,
        batch: list[Request],
        shape: str,
        parents: list[int],
        condition: str,
        group: str | None,
        session: int,
    ) -> None:
        """Submit jobs, in a group, or that wait for each other; the first waits for some jobs."""
        numbers = self.model.numbers(*LIVE) or [job.number for job in self.model.jobs]
        after = tuple(sorted({numbers[n % len(numbers)] for n in parents if numbers}))
        behind = _SHAPES[shape](len(batch))
        batch = [
            request._replace(
                after=() if index else after,
                behind=behind[index],
                condition=condition,
                group=group,
            )
            for index, request in enumerate(batch)
        ]
        jobs = [_invocation(request, f"n{index}") for index, request in enumerate(batch)]
        if any(r.after or r.behind or r.repo or r.group for r in batch):
            self.cut = None  # the first connection looks up repositories and parents
        self.both(
            lambda new: self.model.submit(batch, new),
            lambda rt: rt.submissions.submit_many(jobs, OWNER),
            session,
        )

    def reserve(self, request: Request, session: int) -> None:
        def model(new: list[int]) -> str | None:
            if not new:  # the job of a refused reservation is not in the database
                expected = self.trial().reserve(request, UNKNOWN)
                assert expected == "Refused"
                return expected
            return self.model.reserve(request, new[0])

        if request.repo:
            self.cut = None
        self.both(model, lambda rt: rt.reservations.submit(_invocation(request), OWNER), session)

    def release(self, queue: str, session: int) -> None:
        self.both(
            lambda _: self.model.release(queue),
            lambda rt: rt.queues.release_reservation(queue, OWNER),
            session,
        )

    def pause(self, queue: str, type: str | None, session: int) -> None:
        lost = self.cut == "committed"

        def model(_: list[int]) -> str | None:
            if (queue, type) in self.model.pauses:
                return "Refused"
            self.model.pauses.add((queue, type))
            if not lost:  # else the sweep holds the jobs
                self.model.hold_paused()
            return None

        self.both(model, lambda rt: rt.queues.pause(queue, OWNER, "r", type), session)

    def resume(self, n: int, session: int) -> None:
        if not self.model.pauses:
            return
        queue, type = sorted(self.model.pauses, key=str)[n % len(self.model.pauses)]
        self.cut = None
        self.both(
            lambda _: self.model.resume(queue, type),
            lambda rt: rt.queues.resume(queue, OWNER, type),
            session,
        )

    def sweep(self, session: int) -> None:
        self.cut = None
        self.both(
            lambda _: self.model.hold_paused(),
            lambda rt: rt.sweeps.run("holds", LeaderTerm()),
            session,
        )

    def claim(self, worker: int, free: int, first: int) -> None:
        served = [QUEUES[first], QUEUES[1 - first]]
        expected: list[int] = []
        claimed = self.both(
            lambda _: expected.extend(self.model.claim(worker, served, free)),
            lambda rt: _exchange(rt, worker, [], served, free),
            worker,
        )
        if claimed is not None:
            assert [work.number for work in claimed] == expected
            self.works |= {work.number: work for work in claimed}

    def exchange(self, worker: int, free: int, first: int) -> None:
        """Complete the runs of a worker, and claim jobs in the same statement."""
        served = [QUEUES[first], QUEUES[1 - first]]
        numbers = [n for n in self.works if self.model.job(n).worker == worker]
        done = [self.works.pop(number) for number in numbers]
        started: list[ClaimedJob] = []
        expected: list[int] = []

        async def real(rt: Runtime) -> None:
            answers = await _exchange(rt, worker, done, served, free)
            started.extend(work for work in answers if work.status == "running")

        def model(_: list[int]) -> None:
            chosen = [work.number for work in started]
            expected.extend(self.model.exchange(worker, numbers, served, free, chosen))

        self.cut = None
        self.both(model, real, worker)
        assert [work.number for work in started] == expected
        self.works |= {work.number: work for work in started}

    def run(self, worker: int, free: int, first: int, ends: list[str]) -> None:
        """Claim jobs and end runs."""
        self.claim(worker, free, first)
        for how in ends:
            if self.works:
                self.agrees()
                self.end(30, how)

    def end(self, n: int, how: str) -> None:
        """End a run; without any, claim jobs."""
        if not self.works:
            self.claim(n % 2, 3, 0)
            return
        number = sorted(self.works)[n % len(self.works)]
        work = self.works.pop(number)
        canceling = self.model.job(number).canceling
        self.asked += 1
        question = QuestionSpec(
            key=f"q{self.asked}", text="Which?", freeform=True, never_expires=True
        )

        async def real(rt: Runtime) -> None:
            if canceling:
                await rt.settlement.canceled(work)
                return
            match how:
                case "completed":
                    await rt.settlement.outcome(work, Done())
                case "failed":
                    await rt.settlement.failure(work, Failure("no", declared="PERMANENT"))
                case "retrying":
                    await rt.settlement.failure(work, Failure("no", declared="TRANSIENT_INFRA"))
                case "scheduled":
                    await rt.settlement.outcome(work, Snooze(SLEEP))
                case "waiting_for_input":
                    await rt.asking.ask(work.lease, question)
                case _:
                    await rt.settlement.release_run(work, "shutdown")

        self.cut = None
        self.both(lambda _: self.ended(self.model.end(number, how, SLEEP)), real, 0)

    def answer(self, n: int, session: int) -> None:
        waiting = self.model.numbers("waiting_for_input")
        if not waiting:
            self.end(n, "waiting_for_input")
            return
        number = waiting[n % len(waiting)]
        self.asked += 1
        response = Response(source_event_id=f"e{self.asked}", text="this")

        async def real(rt: Runtime) -> None:
            questions, _ = await rt.questions.of_job(number)
            await rt.questions.answer(number, questions[-1].ordinal, response, OWNER)

        self.cut = None
        self.both(lambda _: self.model.answer(number), real, session)

    def pass_time(self, moment: str | float, session: int) -> None:
        """Let time pass; the workers live, and the leader's timer fires."""
        seconds = moment if isinstance(moment, float) else self.model.until(moment)
        self.cut = None
        self.world.set_clock(self.model.now + seconds)

        async def real(rt: Runtime) -> None:
            for worker in range(2):
                leases = [
                    work.lease
                    for work in self.works.values()
                    if self.model.job(work.number).worker == worker
                ]
                await rt.claim(worker_id(worker), QUEUES).heartbeat(leases, draining=False)
            await rt.sweeps.run("limits", LeaderTerm())
            await rt.sweeps.run("promote", LeaderTerm())

        self.both(lambda _: self.model.pass_time(seconds, sorted(self.works)), real, session)

    def start_burst(self, worker: int, free: int, first: int, session: int) -> None:
        """Start a job, let the tokens of every bucket refill, and submit more than a burst."""
        request = Request(QUEUES[first], TYPES[0], 0, None, "retry")
        self.submit([request], "apart", [], "success", None, session)
        self.claim(worker, free, first)
        for moment in (60.0, 60.0):
            self.agrees()
            self.pass_time(moment, session)
        self.agrees()
        self.submit([request] * 4, "apart", [], "success", None, session)

    def fail_beside_waiting(self, n: int, how: str) -> None:
        """Start members of a group that stops; let a run of the first end, and fail the second."""
        names = sorted(name for name, kinds in GROUPS.items() if kinds == ("parallel", "stop"))
        request = Request(QUEUES[n % 2], TYPES[n // 2 % 2], 5, None, "retry")
        self.submit([request] * 3, "apart", [], "success", names[n % len(names)], 0)
        self.claim(n % 2, 2, n % 2)
        members = [number for number in self.works if self.model.job(number).request.group]
        for number, end in zip(sorted(members)[-2:], (how, "failed"), strict=False):
            self.agrees()
            self.end(sorted(self.works).index(number), end)

    def crash(self, worker: int) -> None:
        self.both(
            lambda _: self.model.crash(worker),
            lambda rt: rt.db.run_transaction(
                lambda conn: rt.dead_workers.rescue_runs(conn, LeaderTerm(), [worker_id(worker)])
            ),
            1 - worker,
        )

    def cancel(self, n: int, tree: bool, session: int) -> None:
        live = self.model.numbers(*LIVE)
        if not live:
            return
        number = live[n % len(live)]
        if tree:
            self.both(
                lambda _: self.model.cancel_tree(number),
                lambda rt: rt.job_control.cancel_tree(number, OWNER),
                session,
            )
        else:
            self.both(
                lambda _: self.model.finish([self.model.job(number)], "canceled"),
                lambda rt: rt.job_control.cancel(number, OWNER, force=True),
                session,
            )

    def retry(self, n: int, session: int) -> None:
        ended = self.model.numbers(*ENDED)
        ended = [number for number in ended if self.model.job(number).retry is None] or ended
        if not ended:
            return
        number = ended[n % len(ended)]
        self.both(
            lambda new: self.model.retry(number, new),
            lambda rt: rt.job_control.retry(number, OWNER),
            session,
        )

    def cancel_group(self, n: int, session: int) -> None:
        names = sorted(self.model.groups)
        if not names:
            return
        name = names[n % len(names)]
        self.both(
            lambda _: self.model.cancel_group(name),
            lambda rt: rt.job_control.cancel_group(name, OWNER),
            session,
        )

    def move(self, n: int, place: Any, other: int, session: int) -> None:
        jobs = self.model.numbers(*WAITING) or [job.number for job in self.model.jobs]
        if len(self.model.jobs) < 2:
            return
        number = jobs[n % len(jobs)]
        anchor = None
        if place in ("before", "after"):
            everyone = [job.number for job in self.model.jobs if job.number != number]
            anchor = everyone[other % len(everyone)]
        self.both(
            lambda _: self.model.move(number, place, anchor),
            lambda rt: rt.queues.move(number, place, OWNER, anchor),
            session,
        )

    def prioritize(self, n: int, priority: int, session: int) -> None:
        if not self.model.jobs:
            return
        number = self.model.jobs[n % len(self.model.jobs)].number
        self.both(
            lambda _: self.model.prioritize(number, priority),
            lambda rt: rt.queues.prioritize(number, priority, OWNER),
            session,
        )


async def _exchange(
    rt: Runtime, worker: int, done: list[ClaimedJob], queues: list[str], free: int
) -> list[ClaimedJob]:
    async with rt.db.connection() as conn:
        return await exchange(
            conn,
            [(work.lease, {}) for work in done],
            worker=worker_id(worker),
            queues=queues,
            types=list(TYPES),
            free=free,
            ahead=0,
        )


def _invocation(request: Request, name: str | None = None) -> Any:
    parents = (*request.after, *(f"n{index}" for index in request.behind))
    kind, policy = GROUPS.get(request.group or "", (None, None))
    fields: dict[str, Any] = {"after": parents, "on": request.condition} if parents else {}
    if request.group:
        fields["group"] = {"name": request.group, "kind": kind, "on_failure": policy}
    return invocation(
        type=request.type,
        queue=request.queue,
        priority=request.priority,
        concurrency_key=request.key,
        on_lost=request.on_lost,
        repo=request.repo and f"https://{request.repo}",
        max_attempts=ATTEMPTS,
        name=name,
        **fields,
    )


def on(server: Server, beginnings: st.SearchStrategy[Any] = BEGINNINGS) -> type[QueueMachine]:
    """Return the machine over databases of a server, whose examples begin like this."""
    values = {"server": server, "beginnings": beginnings}
    return type("QueueMachineOnServer", (QueueMachine,), values)
