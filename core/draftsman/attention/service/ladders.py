"""Steps of ladders that are due."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from draftsman.attention.ladder import DueStep, LadderStep, WhenAway, plan_step
from draftsman.attention.store import ladders as store
from draftsman.database.database import Connection, Database
from draftsman.database.isolation import Isolation
from draftsman.deliveries.delivery import ChannelName
from draftsman.deliveries.service.message_builder import with_identity_links
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.people.policy import Policy
from draftsman.questions.asked_question import QuestionLadder

if TYPE_CHECKING:
    from draftsman.attention.service.oncall import OnCall
    from draftsman.questions.question_spec import QuestionSpec
    from draftsman.settings.attention import LadderSettings
    from draftsman.settings.hours import LadderKind


class LadderSweep:
    """Takes the steps of ladders that are due."""

    def __init__(self, db: Database, policy: Policy, oncall: OnCall, limit: int) -> None:
        self._db = db
        self._policy = policy
        self._oncall = oncall
        self._limit = limit
        self.isolation: Final = Isolation(db, "ladders")

    async def sweep(self, term: LeaderTerm) -> int:
        """Take or postpone the steps that are due; return how many."""
        async with self._db.connection() as conn:
            due = await store.due(conn, term, self._limit, self.isolation.aside)
            if not due:
                return 0
            policy = await with_identity_links(conn, self._policy, ChannelName.SLACK)
        on_duty = await self._oncall.on_duty(due[0].now)
        return await self.isolation.each(
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
        return await self._db.run_transaction(lambda conn: store.take(conn, term, due, plan))


# Which ladder a question has.


CRITICAL: Final = "critical"
"""The kind of critical questions, before their own."""
OWNERS: Final = "@owners"


class LadderChoices:
    """The configured ladders, and which of them a question has."""

    def __init__(
        self,
        ladders: Callable[[], Mapping[str, LadderSettings]],
        choices: Callable[[], Mapping[LadderKind, str]],
    ) -> None:
        """`choices` are the names by kind of question; both are read when a question is asked."""
        self._ladders = ladders
        self._choices = choices

    async def of(self, conn: Connection, job: int, item: QuestionSpec) -> QuestionLadder | None:
        """Return the ladder of a question; the profile of the repository comes first."""
        ladders = self._ladders()
        if not ladders:
            return None
        choices = {str(kind): name for kind, name in self._choices().items()}
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
        ladders = self._ladders().values()
        return any(OWNERS in step.notify for ladder in ladders for step in ladder.steps)


def _steps(settings: LadderSettings) -> tuple[LadderStep, ...]:
    return tuple(
        LadderStep(step.notify, step.after, WhenAway(step.when_away), step.escalate)
        for step in settings.steps
    )
