"""The queues with limits, workflows and two workers that crash: model and database agree."""

from __future__ import annotations

from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from draftsman.domain.outcome import Done, Snooze
from draftsman.domain.question_spec import QuestionSpec
from draftsman.domain.response import Response
from draftsman.domain.run import ClaimedJob, LeaderTerm
from draftsman.errors import Failure
from draftsman.runtime import Runtime
from draftsman.services.jobs.submissions import invocation
from draftsman.store.claim import exchange
from tests.core.stateful.model.queues import WAITING, Request
from tests.core.stateful.model.workflows import LIVE
from tests.core.stateful.queue_driver import OWNER, QueueDriver
from tests.core.stateful.world import CUTS, QUEUES, TYPES, worker_id
from tests.support.server import Server

CONFIGURATIONS: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"type": {"noop": {"running": 2}}, "repo": {"*": {"running": 1}}},
    {"all": {"running": 2}, "repo": {"shop": {"running": 1}}, "type": {"*": {"running": 2}}},
    {"queue": {"one": {"rate": "2/1m"}}, "repo": {"*": {"running": 2}}},
    {"type": {"noop": {"rate": "2/1m", "burst": 3}}, "queue": {"*": {"running": 2}}},
    {
        "concurrency_key": {"*": {"release_while_waiting": True}},
        "repo": {"*": {"running": 1, "rate": "3/30s"}},
    },
    {"concurrency_key": {"*": {"rate": "1/20s", "burst": 2}}, "type": {"noop": {"running": 1}}},
)
"""Settings of `[limits]`; an example has one of them."""
queues = st.sampled_from(QUEUES)
types = st.sampled_from(TYPES)
pick = st.integers(0, 30)
sessions = st.integers(0, 1)
requests = st.builds(
    Request,
    queues,
    types,
    st.sampled_from([0, 0, 0, 5, -5]),
    st.sampled_from([None, None, "a", "a", "b"]),
    st.sampled_from(["resume", "fail"]),
    st.sampled_from([None, "x/shop", "x/shop", "x/web"]),
    st.just(()),
    st.just("success"),
)
conditions = st.sampled_from(["success", "success", "failure", "any"])
ENDS = ("completed", "completed", "failed", "resumed", "scheduled", "waiting_for_input")


class QueueMachine(QueueDriver):
    """Any operation on the queues, from two processes whose connections may break."""

    @initialize(settings=st.sampled_from(CONFIGURATIONS))
    def configure(self, settings: dict[str, Any]) -> None:
        self.set_limits(settings)

    @rule(cut=st.sampled_from(CUTS))
    def break_next_connection(self, cut: str) -> None:
        self.cut = cut

    @rule(
        batch=st.lists(requests, min_size=1, max_size=3),
        parents=st.lists(pick, max_size=2),
        condition=conditions,
        session=sessions,
    )
    def submit(
        self, batch: list[Request], parents: list[int], condition: str, session: int
    ) -> None:
        """Submit jobs; the last of them waits for some jobs, if there are any."""
        numbers = self.model.numbers(*LIVE) or [job.number for job in self.model.jobs]
        after = tuple(sorted({numbers[n % len(numbers)] for n in parents if numbers}))
        batch[-1] = batch[-1]._replace(after=after, condition=condition)
        jobs = [_invocation(request) for request in batch]
        if after or any(request.repo for request in batch):
            self.cut = None  # the first connection looks up repositories and parents
        self.both(
            lambda new: self.model.submit(batch, new),
            lambda rt: rt.submissions.submit_many(jobs, OWNER),
            session,
        )

    @rule(request=requests, session=sessions)
    def reserve(self, request: Request, session: int) -> None:
        def model(new: list[int]) -> str | None:
            if not new:  # the job of a refused reservation is not in the database
                expected = self.trial().reserve(request, 1 << 40)
                assert expected == "Refused"
                return expected
            return self.model.reserve(request, new[0])

        if request.repo:
            self.cut = None
        self.both(model, lambda rt: rt.reservations.submit(_invocation(request), OWNER), session)

    @rule(queue=queues, session=sessions)
    def release(self, queue: str, session: int) -> None:
        self.both(
            lambda _: self.model.release(queue),
            lambda rt: rt.queues.release_reservation(queue, OWNER),
            session,
        )

    @rule(queue=queues, type=st.one_of(st.none(), types), session=sessions)
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

    @precondition(lambda self: self.model.pauses)
    @rule(n=pick, session=sessions)
    def resume(self, n: int, session: int) -> None:
        queue, type = sorted(self.model.pauses, key=str)[n % len(self.model.pauses)]
        self.cut = None
        self.both(
            lambda _: self.model.resume(queue, type),
            lambda rt: rt.queues.resume(queue, OWNER, type),
            session,
        )

    @rule(session=sessions)
    def sweep(self, session: int) -> None:
        self.cut = None
        self.both(
            lambda _: self.model.hold_paused(),
            lambda rt: rt.sweeps.names["holds"](LeaderTerm()),
            session,
        )

    @rule(worker=sessions, free=st.integers(1, 3), first=sessions)
    def claim(self, worker: int, free: int, first: int) -> None:
        served = [QUEUES[first], QUEUES[1 - first]]

        async def real(rt: Runtime) -> list[ClaimedJob]:
            async with rt.db.connection() as conn:
                return await exchange(
                    conn,
                    [],
                    worker=worker_id(worker),
                    queues=served,
                    types=list(TYPES),
                    skip=[],
                    free=free,
                    ahead=0,
                )

        expected: list[int] = []
        claimed = self.both(
            lambda _: expected.extend(self.model.claim(worker, served, free)), real, worker
        )
        if claimed is not None:
            assert [work.number for work in claimed] == expected
            self.works |= {work.number: work for work in claimed}

    @precondition(lambda self: self.works)
    @rule(n=pick, how=st.sampled_from(ENDS), seconds=st.sampled_from([5.0, 25.0]))
    def end(self, n: int, how: str, seconds: float) -> None:
        number = sorted(self.works)[n % len(self.works)]
        work, canceling = self.works.pop(number), self.model.job(number).canceling
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
                case "scheduled":
                    await rt.settlement.outcome(work, Snooze(seconds))
                case "waiting_for_input":
                    await rt.questions.ask(work.lease, question)
                case _:
                    await rt.settlement.release_run(work, "shutdown")

        self.cut = None
        self.both(lambda _: self.ended(self.model.end(number, how, seconds)), real, 0)

    @precondition(lambda self: self.model.numbers("waiting_for_input"))
    @rule(n=pick, session=sessions)
    def answer(self, n: int, session: int) -> None:
        waiting = self.model.numbers("waiting_for_input")
        number = waiting[n % len(waiting)]
        self.asked += 1
        response = Response(source_event_id=f"e{self.asked}", text="this")

        async def real(rt: Runtime) -> None:
            questions, _ = await rt.questions.of_job(number)
            await rt.questions.answer(number, questions[-1].ordinal, response, OWNER)

        self.cut = None
        self.both(lambda _: self.model.requeue([self.model.job(number)]), real, session)

    @rule(seconds=st.sampled_from([1.0, 10.0, 20.0, 30.0, 300.0]), session=sessions)
    def pass_time(self, seconds: float, session: int) -> None:
        """The workers live, and the leader's timer fires."""
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
            await rt.sweeps.names["limits"](LeaderTerm())
            await rt.sweeps.names["promote"](LeaderTerm())

        self.both(lambda _: self.model.pass_time(seconds, sorted(self.works)), real, session)

    @rule(worker=sessions)
    def crash(self, worker: int) -> None:
        self.both(
            lambda _: self.model.crash(worker),
            lambda rt: rt.db.run_transaction(
                lambda conn: rt.sweeps.rescue_runs(conn, LeaderTerm(), [worker_id(worker)])
            ),
            1 - worker,
        )

    @precondition(lambda self: self.model.numbers(*LIVE))
    @rule(n=pick, tree=st.booleans(), session=sessions)
    def cancel(self, n: int, tree: bool, session: int) -> None:
        live = self.model.numbers(*LIVE)
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

    @precondition(lambda self: self.model.numbers("failed", "canceled", "completed"))
    @rule(n=pick, session=sessions)
    def retry(self, n: int, session: int) -> None:
        ended = self.model.numbers("failed", "canceled", "completed")
        number = ended[n % len(ended)]
        self.both(
            lambda new: self.model.retry(number, new),
            lambda rt: rt.job_control.retry(number, OWNER),
            session,
        )

    @precondition(lambda self: len(self.model.jobs) > 1)
    @rule(
        n=pick,
        place=st.sampled_from(["top", "bottom", "before", "before", "after"]),
        other=pick,
        session=sessions,
    )
    def move(self, n: int, place: Any, other: int, session: int) -> None:
        jobs = self.model.numbers(*WAITING) or [job.number for job in self.model.jobs]
        number, anchor = jobs[n % len(jobs)], None
        if place in ("before", "after"):
            everyone = [job.number for job in self.model.jobs if job.number != number]
            anchor = everyone[other % len(everyone)]
        self.both(
            lambda _: self.model.move(number, place, anchor),
            lambda rt: rt.queues.move(number, place, OWNER, anchor),
            session,
        )

    @precondition(lambda self: self.model.jobs)
    @rule(n=pick, priority=st.sampled_from([0, 5, -5]), session=sessions)
    def prioritize(self, n: int, priority: int, session: int) -> None:
        number = self.model.jobs[n % len(self.model.jobs)].number
        self.both(
            lambda _: self.model.prioritize(number, priority),
            lambda rt: rt.queues.prioritize(number, priority, OWNER),
            session,
        )


def _invocation(request: Request) -> Any:
    fields: dict[str, Any] = {"after": request.after, "on": request.condition}
    return invocation(
        type=request.type,
        queue=request.queue,
        priority=request.priority,
        concurrency_key=request.key,
        on_lost=request.on_lost,
        repo=request.repo and f"https://git.example.org/{request.repo}",
        max_attempts=100,
        **(fields if request.after else {}),
    )


def on(server: Server) -> type[QueueMachine]:
    """Return the machine over databases of a server."""
    return type("QueueMachineOnServer", (QueueMachine,), {"server": server})
