"""Drives the model of the queues and the database side by side, and compares them."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from copy import deepcopy
from typing import Any, Final

import psycopg
from hypothesis.stateful import RuleBasedStateMachine, invariant

from draftsman.database.database import Connection
from draftsman.errors import DatabaseUnreachable, DraftsmanError
from draftsman.jobs.runs.run import ClaimedJob, LeaderTerm
from draftsman.runtime import Runtime
from draftsman.settings.limits import UsageSettings
from tests.core.stateful.model.fan_out import FanOutModel
from tests.core.stateful.model.limits import Limits
from tests.core.stateful.model.people import EVERYBODY
from tests.core.stateful.model.queues import ENDED
from tests.core.stateful.world import QUEUES, World, at
from tests.support.server import Server

OWNER: Final = next(who for who in EVERYBODY if who.owner).actor
LOOK: Final = """
SELECT s.number, s.status::text, s.hold::text, s.held_by, s.position, s.concurrency_key,
       (s.hold >= 'key') IS NOT TRUE AND s.finished_at IS NULL AS has_key, r.retry_of,
       s.queue, s.xmin::text
  FROM draftsman.job_states s JOIN draftsman.job_requests r USING (number) ORDER BY number"""
RESERVATIONS: Final = "SELECT queue, job FROM draftsman.queue_reservations WHERE expires_at > %s"
PAUSES: Final = "SELECT queue, type FROM draftsman.queue_pauses ORDER BY queue, type"
BUCKETS: Final = "SELECT name, taken, next_at FROM draftsman.limit_buckets"
PROGRESS: Final = """
SELECT g.name, count(*) FILTER (WHERE s.status = 'completed'),
       count(*) FILTER (WHERE s.status = 'running'),
       count(*) FILTER (WHERE s.status IN ('failed', 'dead_letter')),
       count(*) FILTER (WHERE s.status = 'canceled'),
       count(*) FILTER (WHERE s.finished_at IS NULL AND s.status <> 'running')
  FROM draftsman.job_groups g, draftsman.current_members(g.id) m
  JOIN draftsman.job_states s ON s.number = m.job
 GROUP BY g.name"""


class QueueDriver(RuleBasedStateMachine):
    """Shared parts of the rules of the queues."""

    server: Server

    def __init__(self) -> None:
        super().__init__()
        self.world = World(self.server)
        self.model = FanOutModel()
        self.works: dict[int, ClaimedJob] = {}
        """The runs that their workers know of."""
        self.lost: list[ClaimedJob] = []
        """The runs that their workers have lost."""
        self.asked = 0
        self.cut: str | None = None
        self._explained: dict[int, tuple[Any, ...]] = {}
        self._ordered: dict[str, tuple[Any, ...]] = {}
        self._reader = psycopg.connect(self.world.dbs[0].url, autocommit=True)
        for worker in range(2):
            self.world.run(self.world.register(worker, here=worker == 0))

    def teardown(self) -> None:
        """Check the invariants of the data, and drop the database."""
        broken = self.world.run(self.world.rts[0].read_model.invariants())
        self._reader.close()
        self.world.close()
        assert not {name: rows for name, rows in broken.items() if rows}

    def set_limits(self, settings: dict[str, Any]) -> None:
        """Set or change the limits, and let the leader's sweep apply them."""
        rules = json.dumps(UsageSettings.model_validate(settings).rules())

        async def work(conn: Connection) -> None:
            await conn.execute("SELECT draftsman.set_limits(%s::jsonb, 'system')", (rules,))

        async def real(rt: Runtime) -> None:
            await rt.db.run_transaction(work)
            await rt.sweeps.run("limits", LeaderTerm())

        self.cut = None
        self.both(lambda _: self.model.change_limits(Limits.of(settings)), real, 0)

    def both(
        self,
        model: Callable[[list[int]], Any],
        real: Callable[[Runtime], Awaitable[Any]],
        session: int,
    ) -> Any:
        """Run it in the product and then in the model; return the product's result.

        The model gets the numbers of new jobs. A connection that breaks before the commit leaves no
        effect, after it the full effect.
        """
        db = self.world.dbs[session]
        db.cut = self.cut
        cut = self.cut
        self.cut = None
        result, error = self.world.run(_attempt(real(self.world.rts[session])))
        db.cut = None
        lost = isinstance(error, DatabaseUnreachable) and cut is not None
        if lost and cut != "committed":
            return None
        known = {job.number for job in self.model.jobs}
        rows = self._reader.execute(LOOK).fetchall()
        self.model.positions = {number: position for number, _, _, _, position, *_ in rows}
        expected = model([number for number, *_ in rows if number not in known])
        if lost:
            return None
        refused = type(error).__name__ if error else None
        assert refused == (expected if isinstance(expected, str) else None), f"{error}, {expected}"
        return result

    def trial(self) -> FanOutModel:
        """Return a copy of the model in which the next job has the last position."""
        return deepcopy(self.model)

    def ended(self, status: str) -> None:
        """Check the status of a job whose run has ended, by the comparison after the rule."""
        assert status != "running"

    @invariant()
    def agrees(self) -> None:
        """Compare jobs, keys, reservations, places, explanations, and the order of claims."""
        now = at(self.model.now)
        rows = self._reader.execute(LOOK).fetchall()
        jobs = {job.number: job for job in self.model.jobs}
        self.lost += [work for n, work in self.works.items() if jobs[n].status != "running"]
        self.works = {n: work for n, work in self.works.items() if jobs[n].status == "running"}
        assert [row[0] for row in rows] == sorted(jobs)
        for number, status, hold, held_by, _, _, _, retry_of, *_ in rows:
            job = jobs[number]
            state = (job.status, self.model.hold(job), job.retry_of)
            assert (status, hold, retry_of) == state, f"D-{number} {held_by}: {state}"
            if hold == "limit":
                full = ["pause"] if self.model.paused(job) else []
                assert held_by in full + self.model.full(job), (
                    f"D-{number}: {held_by}, {self.model.full(job)}, {self.model.taken()}"
                )
        holders = {key: n for n, _, _, _, _, key, has_key, *_ in rows if key and has_key}
        assert holders == self.model.holders
        reservations: dict[str, int] = dict(self._reader.execute(RESERVATIONS, (now,)).fetchall())
        assert reservations == self.model.reservations
        self._places_agree({held_by for _, _, hold, held_by, *_ in rows if hold == "limit"})
        pauses = self._reader.execute(PAUSES).fetchall()
        for queue in QUEUES:
            versions = [(number, xmin) for number, *_, name, xmin in rows if name == queue]
            self._order_agrees(queue, (versions, sorted(reservations.items()), pauses))
            positions = [
                (-job.priority, self.model.positions[job.number])
                for job in self.model.in_order(queue)
            ]
            assert positions == sorted(positions)
        self.world.run(self._reasons_agree())
        progress = {name: counts for name, *counts in self._reader.execute(PROGRESS).fetchall()}
        for name in self.model.groups:
            expected = list(self.model.progress(name).values())
            assert progress[name] == expected, f"{name}: {progress[name]}"

    def _places_agree(self, waited_for: set[str]) -> None:
        """Compare the places of each bucket, and when the leader's timer fires for it."""
        taken = self.model.taken()
        rows = self._reader.execute(BUCKETS).fetchall()
        assert {name: count for name, count, _ in rows if count} == taken
        for name, count, next_at in rows:
            limit = self.model.limits.limit(name)
            if name in waited_for and limit.rate and count < (limit.running or count + 1):
                due = self.model.limits.next_start(name, self.model.now)
                assert next_at is not None, f"no timer for {name}"
                assert abs((next_at - at(due)).total_seconds()) < 0.001, f"{name} is due {due}"

    def _order_agrees(self, queue: str, rows: tuple[Any, ...]) -> None:
        """Compare the real claim with the order of the model, if the model or the rows changed.

        A claim depends on nothing else than these rows.
        """
        seen = (expected := self.model.next(queue), *rows)
        if self._ordered.get(queue) != seen:
            assert self.world.order(queue) == expected
            self._ordered[queue] = seen

    async def _reasons_agree(self) -> None:
        """Compare the reasons that `why` gives for the jobs of which the model's has changed."""
        rt = self.world.rts[0]
        around = (len(self.model.reservations), tuple(self.model.pauses))
        async with self.world.dbs[0].shared_connection():
            for job in self.model.jobs:
                reason = self.model.reason(job)
                seen = (reason, job.status, *(around if job.status not in ENDED else ()))
                if self._explained.get(job.number) != seen:
                    self._explained[job.number] = seen
                    why = await rt.read_model.why(job.number)
                    assert why.reason == reason, f"D-{job.number}: {why}"


async def _attempt(work: Awaitable[Any]) -> tuple[Any, DraftsmanError | None]:
    try:
        return await work, None
    except DraftsmanError as error:
        return None, error
