"""Steps of ladders that are due."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from draftsman.attention import store
from draftsman.attention.ladder import DueStep, LadderStep, WhenAway, plan_step
from draftsman.database.database import Connection, Database
from draftsman.database.isolation import Isolation
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.jobs.runs.sweep import DueTime, DueTurn, Sweep, repeat
from draftsman.people.policy import Policy
from draftsman.people.service.linked_policy import with_identity_links
from draftsman.questions.asked_question import QuestionLadder

if TYPE_CHECKING:
    from draftsman.attention.service.oncall import OnCall
    from draftsman.questions.question_spec import QuestionSpec
    from draftsman.settings import Settings
    from draftsman.settings.attention import LadderSettings


class LadderSweep:
    """Takes the steps of ladders that are due."""

    def __init__(self, *, db: Database, policy: Policy, oncall: OnCall, limit: int) -> None:
        self._db = db
        self._policy = policy
        self._oncall = oncall
        self._limit = limit
        self._isolation = Isolation(db, "ladders")

    def sweeps(self) -> Sequence[Sweep]:
        """Return the sweep of ladders."""
        return [
            Sweep(
                name="ladders",
                description="takes the steps of ladders, which notify people",
                run=partial(repeat, self.sweep, self._limit),
                isolations=(self._isolation,),
                due=DueTime(DueTurn.QUESTIONS, store.LADDERS_DUE),
            )
        ]

    async def sweep(self, term: LeaderTerm) -> int:
        """Take or postpone the steps that are due; return how many."""
        async with self._db.connection() as conn:
            due = await store.due_steps(conn, term, self._limit, self._isolation.aside)
            if not due:
                return 0
            policy = await with_identity_links(conn, self._policy)
        on_duty = await self._oncall.on_duty(due[0].now)
        return await self._isolation.each(
            [(step.job, step) for step in due],
            lambda step: self._take(term, step, policy, on_duty),
        )

    async def _take(
        self,
        term: LeaderTerm,
        due: DueStep,
        policy: Policy,
        on_duty: Mapping[str, Sequence[str]],
    ) -> bool:
        plan = plan_step(due, policy, on_duty)
        return await self._db.run_transaction(lambda conn: store.take_step(conn, term, due, plan))


# Which ladder a question has.


CRITICAL: Final = "critical"
"""The kind of critical questions, before their own."""
OWNERS: Final = "@owners"


class LadderChoices:
    """The configured ladders, and which of them a question has."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    async def of(self, conn: Connection, job: int, item: QuestionSpec) -> QuestionLadder | None:
        """Return the ladder of a question; the profile of the repository comes first."""
        ladders = self._settings.ladders
        if not ladders:
            return None
        choices = {str(kind): name for kind, name in self._settings.questions.ladders.items()}
        choices |= await store.profile_ladders(conn, job)
        name = choices.get(CRITICAL) if item.critical else None
        name = name or choices.get(str(item.kind))
        settings = ladders.get(name or "")
        if name is None or settings is None:
            return None
        return QuestionLadder(name, [step.as_json() for step in _steps(settings)])

    @property
    def uses_owners(self) -> bool:
        """Whether any ladder notifies the code owners."""
        ladders = self._settings.ladders.values()
        return any(OWNERS in step.notify for ladder in ladders for step in ladder.steps)


def _steps(settings: LadderSettings) -> tuple[LadderStep, ...]:
    return tuple(
        LadderStep(step.notify, step.after, WhenAway(step.when_away), step.escalate)
        for step in settings.steps
    )
