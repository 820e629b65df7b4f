"""Drives model and database side by side: each transaction in both, then everything is compared."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from copy import deepcopy
from datetime import datetime
from typing import Any, ClassVar

from hypothesis.stateful import RuleBasedStateMachine, invariant

from draftsman.errors import DraftsmanError, NotPermitted
from draftsman.jobs.runs.run import ClaimedJob
from draftsman.people.policy import Policy
from draftsman.questions.question import Question
from draftsman.runtime import Runtime
from tests.core.stateful.model.people import EVERYBODY, ModelActor
from tests.core.stateful.model.state import Refusal, Worker, facts
from tests.core.stateful.model.sweeps import UNLOCKED, Model
from tests.core.stateful.world import BEGIN, QUEUES, World
from tests.support.server import Server


class Driver(RuleBasedStateMachine):
    """Shared parts of all rules."""

    passed: ClassVar[set[tuple[str, str]]] = set()
    """Transitions of all examples."""

    def __init__(self, server: Server) -> None:
        super().__init__()
        self.world = World(server)
        self.model = Model(workers=[Worker(here=True), Worker(here=False)])
        self.works: dict[int, ClaimedJob] = {}
        """All claims of workers, by lease."""
        self.known: list[set[int]] = [set(), set()]
        """Leases that a worker still knows of."""
        self.numbers: list[int] = []
        self.tokens: dict[int, int] = {}
        self.secrets: list[str] = []
        self.cuts: dict[int, str] = {}
        """When the connection of the next transaction dies, by session."""
        self._checked = ""
        self._order_seen: dict[str, list[int]] = {}
        for worker, row in enumerate(self.model.workers):
            self.world.run(self.world.register(worker, here=row.here))

    def teardown(self) -> None:
        """Record the statistics, and drop the example's database."""
        self.passed.update(self.world.passed())
        self.world.close()

    def run_transaction(
        self,
        model: Callable[[], Any],
        real: Callable[[Runtime], Awaitable[Any]],
        shape: Callable[[Any], Any] = lambda answer: answer,
        *,
        session: int = 0,
        cuttable: bool = True,
    ) -> Any:
        """Run it in model and product and compare; `shape` converts the product's result.

        Return the product's result; None when it was refused, as expected, or its reply was lost. A
        cut before the commit must leave no effect, a cut after the commit the full effect.
        """
        db = self.world.dbs[session]
        cut = self.cuts.pop(session, None) if cuttable else None
        db.cut = cut
        before = deepcopy(self.model) if cut in ("before", "uncommitted") else None
        expected, refused = self._modelled(model)
        answer, error = self.world.run(_attempt(real(self.world.rts[session])))
        db.cut = None
        if cut is not None and error == "DatabaseUnreachable":
            self.model = before or self.model
            self.compare()
            return None
        assert error == refused, f"refused with {error} {answer}, the model says {refused}"
        self.compare()
        if refused is None:
            answer_shape = shape(answer)
            assert answer_shape == expected, f"answered {answer_shape}, the model says {expected}"
        return answer if refused is None else None

    def compare(self) -> None:
        """Compare every job, and record the numbers and tokens of new jobs."""
        rows = self.world.look()
        assert len(rows) == len(self.model.jobs), f"{len(rows)} jobs, not {len(self.model.jobs)}"
        self.numbers = [number for number, _, _ in rows]
        for place, (number, token, row) in enumerate(rows):
            job = self.model.jobs[place]
            expected = facts(job)
            retry_of = None if job.retry_of is None else self.numbers[job.retry_of]
            expected["retry_of"] = retry_of
            wrong = [
                f"{name}: {row[name]!r}, the model says {expected[name]!r}"
                for name in expected
                if not _same(row[name], expected[name])
            ]
            assert not wrong, f"D-{number}: " + "; ".join(wrong)
            self._learn(number, job.lease, token)

    @invariant()
    def all_agrees(self) -> None:
        """Compare lists, claim order and invariants.

        Only where the model changed: each transaction has compared the rows.
        """
        moved = repr((self.model.now, self.model.workers, self.model.jobs))
        if moved != self._checked:
            self._checked = moved
            self._order_agrees()
            self.world.run(self._view_agrees(self.world.rts[1]))

    async def _view_agrees(self, rt: Runtime) -> None:
        stats = await rt.read_model.stats()
        counts = {status: count for status, count in stats.jobs.items() if count}
        assert counts == self.model.counts()
        assert stats.open_questions == len(self.model.asked())
        border = self.model.now - UNLOCKED
        live = [
            worker for worker in self.model.workers if worker.registered and worker.beat > border
        ]
        assert stats.workers == len(live)
        self._questions_agree(await rt.questions.open(), rt.policy)
        broken = await rt.read_model.invariants()
        assert {name: rows for name, rows in broken.items() if rows} == {}

    def _questions_agree(self, questions: Sequence[Question], policy: Policy) -> None:
        """Compare the open questions, their order, and their approvers."""
        expected_questions = self.model.asked()
        expected = [(self.numbers[place], ordinal) for place, ordinal in expected_questions]
        assert [(item.job, item.ordinal) for item in questions] == expected
        for item, (place, ordinal) in zip(questions, expected_questions, strict=True):
            job = self.model.jobs[place]
            modelled = job.questions[ordinal - 1]
            if modelled.kind == "approval":
                assert (tuple(item.approvers), item.quorum) == (modelled.approvers, modelled.quorum)
                for actor in EVERYBODY:
                    may = _may(policy, actor, item, job.invoker)
                    assert may == actor.decides(modelled.approvers, job.invoker), (
                        f"{actor} may: {may}"
                    )

    def _order_agrees(self) -> None:
        """Check that the real claim has the model's order of each queue; only after a change."""
        for queue in QUEUES:
            order = [self.numbers[place] for place in self.model.order(queue)]
            if order == self._order_seen.get(queue):
                continue
            real = self.world.order(queue)
            assert real == order, f"queue {queue} is claimed as {real}, the model says {order}"
            self._order_seen[queue] = order

    def place(self, number: int) -> int:
        """Return the model's index of a job."""
        return self.numbers.index(number)

    def second(self, when: datetime | None) -> float | None:
        """Return an instant as seconds of the example."""
        return None if when is None else (when - BEGIN).total_seconds()

    def leases(self, *, stale: bool, status: str = "running") -> list[int]:
        """Return leases of jobs in this status that a worker got, newest last.

        Stale leases come first; leases of jobs that another worker claimed since come last.
        """
        held = [place for place in sorted(self.works) if self.model.holder(place, status)]
        if not stale:
            return held
        lost = [place for place in sorted(self.works) if place not in held]
        return sorted(lost, key=lambda lease: self.model.owner(lease).status == status) or held

    def leases_of_job(self, lease: int) -> list[int]:
        """Return all leases of the job of a lease that workers got, oldest first."""
        job = self.model.leases[lease].job
        return [place for place in sorted(self.works) if self.model.leases[place].job == job]

    def got(self, worker: int, works: list[ClaimedJob]) -> None:
        """Record the claims of a worker."""
        for work in works:
            if work.status in ("claimed", "running"):
                lease = next(place for place, token in self.tokens.items() if token == work.token)
                self.works[lease] = work
                self.known[worker].add(lease)

    def _modelled(self, model: Callable[[], Any]) -> tuple[Any, str | None]:
        try:
            return model(), None
        except Refusal as refusal:
            return None, str(refusal)

    def _learn(self, number: int, lease: int | None, token: int | None) -> None:
        assert (lease is None) == (token is None), f"D-{number} has the lease {token}"
        if lease is None or token is None:
            return
        if lease not in self.tokens:
            assert token not in self.tokens.values(), f"D-{number} has an old lease"
        assert self.tokens.setdefault(lease, token) == token, f"D-{number} changed its lease"


def _may(policy: Policy, actor: ModelActor, item: Question, invoker: str) -> bool:
    try:
        policy.check_vote(policy.resolve(actor.actor), item.approvers, invoker=invoker)
    except NotPermitted:
        return False
    return True


async def _attempt(work: Awaitable[Any]) -> tuple[Any, str | None]:
    try:
        return await work, None
    except DraftsmanError as error:
        return str(error), type(error).__name__


def _same(real: Any, expected: Any) -> bool:
    if isinstance(real, float | int) and isinstance(expected, float | int):
        return abs(real - expected) < 0.001
    if isinstance(real, list) and isinstance(expected, list | tuple):
        return len(real) == len(expected) and all(map(_same, real, expected))
    return bool(real == expected)
