"""Order, pauses, keys, reservations and crashes of two workers: model and database agree."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from copy import deepcopy
from typing import Any, Final

import psycopg
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from draftsman.domain.job import OnLost
from draftsman.domain.outcome import Done
from draftsman.domain.run import ClaimedJob, LeaderTerm
from draftsman.errors import DatabaseUnreachable, DraftsmanError, Failure
from draftsman.runtime import Runtime
from draftsman.services.jobs.submissions import invocation
from draftsman.store.claim import exchange
from tests.core.stateful.model.people import EVERYBODY
from tests.core.stateful.model.queues import WAITING, QueueModel
from tests.core.stateful.world import CUTS, QUEUES, TYPES, World, worker_id
from tests.support.server import Server

OWNER: Final = next(who for who in EVERYBODY if who.owner).actor
STATES: Final = "SELECT number, status::text FROM draftsman.job_states ORDER BY number"
HOLDERS: Final = """
SELECT concurrency_key, number FROM draftsman.job_states
 WHERE concurrency_key IS NOT NULL AND (hold >= 'key') IS NOT TRUE AND finished_at IS NULL"""
RESERVATIONS: Final = "SELECT queue, job FROM draftsman.active_reservations"
queues = st.sampled_from(QUEUES)
types = st.sampled_from(TYPES)
pick = st.integers(0, 30)
sessions = st.integers(0, 1)
requests = st.tuples(
    queues,
    types,
    st.sampled_from([0, 0, 0, 5, -5]),
    st.sampled_from([None, None, "a", "a", "b"]),
    st.sampled_from(["resume", "fail"]),
)


class QueueMachine(RuleBasedStateMachine):
    """Any operation on the queues, from two processes whose connections may break."""

    server: Server

    def __init__(self) -> None:
        super().__init__()
        self.world = World(self.server)
        self.model = QueueModel()
        self.works: dict[int, ClaimedJob] = {}
        """The runs that their workers know of."""
        self.cut: str | None = None
        for worker in range(2):
            self.world.run(self.world.register(worker, here=worker == 0))

    def teardown(self) -> None:
        """Check the invariants of the data, and drop the database."""
        broken = self.world.run(self.world.rts[0].read_model.invariants())
        self.world.close()
        assert not {name: found for name, found in broken.items() if found}

    def both(
        self,
        model: Callable[[], Any],
        real: Callable[[Runtime], Awaitable[Any]],
        session: int,
    ) -> Any:
        """Run it in the model and in the product; return the product's result.

        A connection that breaks before the commit leaves no effect, after it the full effect.
        """
        db, before = self.world.dbs[session], deepcopy(self.model)
        db.cut, cut, self.cut = self.cut, self.cut, None
        expected = model()
        result, error = self.world.run(_attempt(real(self.world.rts[session])))
        db.cut = None
        if isinstance(error, DatabaseUnreachable) and cut is not None:
            self.model = before if cut != "committed" else self.model
            return None
        refused = type(error).__name__ if error else None
        assert refused == (expected if isinstance(expected, str) else None), error
        return result

    @rule(cut=st.sampled_from(CUTS))
    def break_next_connection(self, cut: str) -> None:
        self.cut = cut

    @rule(batch=st.lists(requests, min_size=1, max_size=3), session=sessions)
    def submit(self, batch: list[tuple[str, str, int, str | None, str]], session: int) -> None:
        # a key belongs to a queue here: positions of different queues have no order
        batch = [(q, t, p, key and f"{q}:{key}", lost) for q, t, p, key, lost in batch]
        jobs = [
            invocation(
                type=type,
                queue=queue,
                priority=priority,
                concurrency_key=key,
                on_lost=OnLost(lost),
            )
            for queue, type, priority, key, lost in batch
        ]
        numbers_lost = self.cut in ("before", "uncommitted")
        if numbers_lost:
            self.cut = None  # an uncommitted submission uses up numbers
        self.both(
            lambda: self.model.submit(batch),
            lambda rt: rt.submissions.submit_many(jobs, OWNER),
            session,
        )

    @rule(request=requests, session=sessions)
    def reserve(self, request: tuple[str, str, int, str | None, str], session: int) -> None:
        queue, type, priority, key, lost = request
        key = key and f"{queue}:{key}"
        job = invocation(
            type=type, queue=queue, priority=priority, concurrency_key=key, on_lost=OnLost(lost)
        )
        if self.cut in ("before", "uncommitted"):
            self.cut = None
        self.both(
            lambda: self.model.reserve((queue, type, priority, key, lost)),
            lambda rt: rt.reservations.submit(job, OWNER),
            session,
        )

    @rule(queue=queues, session=sessions)
    def release(self, queue: str, session: int) -> None:
        self.both(
            lambda: self.model.release(queue),
            lambda rt: rt.queues.release_reservation(queue, OWNER),
            session,
        )

    @rule(queue=queues, type=st.one_of(st.none(), types), session=sessions)
    def pause(self, queue: str, type: str | None, session: int) -> None:
        def model() -> str | None:
            if (queue, type) in self.model.pauses:
                return "Refused"
            self.model.pauses.add((queue, type))
            if type is not None:
                self.model.hold_paused()
            return None

        self.both(model, lambda rt: rt.queues.pause(queue, OWNER, "r", type), session)

    @precondition(lambda self: self.model.pauses)
    @rule(n=pick, session=sessions)
    def resume(self, n: int, session: int) -> None:
        queue, type = sorted(self.model.pauses, key=str)[n % len(self.model.pauses)]
        self.both(
            lambda: self.model.pauses.discard((queue, type)),
            lambda rt: rt.queues.resume(queue, OWNER, type),
            session,
        )

    @rule(session=sessions)
    def sweep(self, session: int) -> None:
        self.cut = None
        self.both(
            self.model.hold_paused, lambda rt: rt.sweeps.names["holds"](LeaderTerm()), session
        )

    @rule(worker=sessions, free=st.integers(1, 3), first=sessions)
    def claim(self, worker: int, free: int, first: int) -> None:
        served = [QUEUES[first], QUEUES[1 - first]]
        expected: list[int] = []

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

        def model() -> None:
            expected.extend(self.model.claim(worker, served, free))

        claimed = self.both(model, real, worker)
        if claimed is not None:
            assert [work.number for work in claimed] == expected
            self.works |= {work.number: work for work in claimed}

    @precondition(lambda self: self.works)
    @rule(n=pick, how=st.sampled_from(["completed", "completed", "failed", "resumed"]))
    def end(self, n: int, how: str) -> None:
        number = sorted(self.works)[n % len(self.works)]
        work = self.works.pop(number)

        async def real(rt: Runtime) -> None:
            match how:
                case "completed":
                    await rt.settlement.outcome(work, Done())
                case "failed":
                    await rt.settlement.failure(work, Failure("no", declared="PERMANENT"))
                case _:
                    await rt.settlement.release_run(work, "shutdown")

        self.cut = None
        self.both(lambda: self.model.become(number, how), real, 0)

    @rule(worker=sessions)
    def crash(self, worker: int) -> None:
        self.both(
            lambda: self.model.crash(worker),
            lambda rt: rt.db.run_transaction(
                lambda conn: rt.sweeps.rescue_runs(conn, LeaderTerm(), [worker_id(worker)])
            ),
            1 - worker,
        )
        running = set(self.model.numbers("running"))
        self.works = {number: work for number, work in self.works.items() if number in running}

    @precondition(lambda self: self.model.numbers("running", *WAITING))
    @rule(n=pick, session=sessions)
    def cancel(self, n: int, session: int) -> None:
        live = self.model.numbers("running", *WAITING)
        number = live[n % len(live)]
        self.both(
            lambda: self.model.become(number, "canceled"),
            lambda rt: rt.job_control.cancel(number, OWNER, force=True),
            session,
        )
        if self.model.job(number).status == "canceled":
            self.works.pop(number, None)

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
            lambda: self.model.move(number, place, anchor),
            lambda rt: rt.queues.move(number, place, OWNER, anchor),
            session,
        )

    @precondition(lambda self: self.model.jobs)
    @rule(n=pick, priority=st.sampled_from([0, 5, -5]), session=sessions)
    def prioritize(self, n: int, priority: int, session: int) -> None:
        number = self.model.jobs[n % len(self.model.jobs)].number
        self.both(
            lambda: self.model.prioritize(number, priority),
            lambda rt: rt.queues.prioritize(number, priority, OWNER),
            session,
        )

    @invariant()
    def agrees(self) -> None:
        with psycopg.connect(self.world.dbs[0].url) as conn:
            states: dict[int, str] = dict(conn.execute(STATES).fetchall())
            holders: dict[str, int] = dict(conn.execute(HOLDERS).fetchall())
            reservations: dict[str, int] = dict(conn.execute(RESERVATIONS).fetchall())
        assert states == {job.number: job.status for job in self.model.jobs}
        assert holders == self.model.holders
        assert reservations == self.model.reservations
        for queue in QUEUES:
            assert self.world.order(queue) == self.model.next(queue)


async def _attempt(work: Awaitable[Any]) -> tuple[Any, DraftsmanError | None]:
    try:
        return await work, None
    except DraftsmanError as error:
        return None, error


def on(server: Server) -> type[QueueMachine]:
    """Return the machine over databases of a server."""
    return type("QueueMachineOnServer", (QueueMachine,), {"server": server})
