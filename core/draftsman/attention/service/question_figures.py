"""First views of questions, and the figures of people's time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from draftsman.attention import store
from draftsman.attention.figures import AttentionFigures, metrics_text, with_quiet_pings
from draftsman.database.database import Database
from draftsman.errors import DraftsmanError, NotPermitted, UsageError
from draftsman.metrics import RecentMetrics
from draftsman.people.actor import Actor
from draftsman.people.hours import QuietHours
from draftsman.people.policy import Policy
from draftsman.questions.question import OpenQuestion
from draftsman.questions.rights import refusal

MAX_QUESTIONS: Final = 20_000
"""Questions of which figures are computed, the newest."""
DAY: Final = 86_400.0
MAX_SECONDS: Final = 366 * DAY


class QuestionFigures:
    """Views of questions, and figures."""

    def __init__(self, db: Database, policy: Policy, quiet: QuietHours | None) -> None:
        """`quiet` are the quiet hours of questions without known respondents."""
        self._db = db
        self._policy = policy
        self._quiet = quiet
        self._metrics = RecentMetrics(self._read_metrics)

    async def record_views(self, questions: Sequence[OpenQuestion], actor: Actor) -> int:
        """Record that the actor opened these questions; return the number of first views.

        Only questions that the actor may answer count. A session that may not write records none.
        """
        actor = self._policy.resolve(actor)
        refs = [(q.job, q.ordinal) for q in questions if self.refusal(q, actor) is None]
        if not refs:
            return 0
        try:
            return await self._db.run_transaction(
                lambda conn: store.record_views(conn, refs, actor)
            )
        except DraftsmanError:  # a view is never worth the failure of the command that shows it
            return 0

    async def read(self, since: float, until: float = 0) -> list[AttentionFigures]:
        """Return figures of the questions asked `since` to `until` seconds ago: all, then by group.

        Operators and the owner of the database read those of all people, others their own. Raises
        UsageError.
        """
        if not math.isfinite(since) or not 0 < since <= MAX_SECONDS:
            raise UsageError("since must be more than 0 and at most 366 days")
        async with self._db.connection() as conn:
            figures = await store.figures(conn, since, MAX_QUESTIONS, until)
            interruptions = await store.interruptions(conn, since, MAX_QUESTIONS, until)
        return with_quiet_pings(figures, interruptions, self._policy, self._quiet)

    async def metrics(self) -> str:
        """Return the figures of the last day for Prometheus, at most 15 seconds old."""
        return await self._metrics.text()

    async def _read_metrics(self) -> str:
        return metrics_text(await self.read(DAY))

    def refusal(self, question: OpenQuestion, actor: Actor) -> NotPermitted | None:
        """Return why a resolved actor may not answer or decide an open question, if so."""
        invoker = self._policy.requester(question.requester)
        return refusal(self._policy, actor, question, invoker=invoker)
