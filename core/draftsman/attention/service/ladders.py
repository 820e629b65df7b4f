"""Steps of ladders that are due."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from draftsman.attention.ladder import DueStep, plan_step
from draftsman.attention.store import ladders as store
from draftsman.database.database import Database
from draftsman.database.isolation import Isolation
from draftsman.deliveries.delivery import ChannelName
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.people.policy import Policy

if TYPE_CHECKING:
    from draftsman.attention.service.oncall import OnCall


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
        from draftsman.deliveries.service.message_builder import with_identity_links

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
