"""Answers, decisions and cancels with an undo window, at whose end they take effect, once.

A decision is stored as a row until it takes effect, so that it survives the process of its person.
The process applies it when it is due; so does the leader. Until then it is no answer: of two
answers, the first that takes effect counts.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from draftsman.database.database import Connection, Database, translate_errors
from draftsman.database.isolation import Isolation
from draftsman.errors import DatabaseUnreachable, DraftsmanError, NotFound, Refused, UsageError
from draftsman.ids import job_name
from draftsman.jobs.control.service.control import CancelResult, JobControl
from draftsman.jobs.job import Status
from draftsman.jobs.pending_decisions import store
from draftsman.jobs.pending_decisions.pending_decision import PendingDecision
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.jobs.runs.store import jobs
from draftsman.jobs.runs.sweep import DueTime, DueTurn, Sweep, repeat
from draftsman.people.actor import Actor
from draftsman.people.policy import Policy
from draftsman.questions import answer as reading
from draftsman.questions.answer import Verdict, stored_reason
from draftsman.questions.question import Decision
from draftsman.questions.response import Response
from draftsman.questions.service.questions import Questions
from draftsman.questions.store import questions as question_store

RETRY: Final = 0.5
"""Seconds between attempts to apply a decision, as when the database cannot be reached."""
EARLY_ATTEMPTS: Final = 6
"""Attempts at a decision that is not due yet by the clock of the database."""
Effect = Verdict | CancelResult
_log = logging.getLogger(__name__)
_FINAL: Final = (Refused, UsageError, NotFound)
"""Errors of a decision that cannot take effect any more, as for a job that has finished."""


class PendingDecisions:
    """Holding, undoing and applying decisions."""

    def __init__(
        self,
        *,
        db: Database,
        policy: Policy,
        questions: Questions,
        job_control: JobControl,
        limit: int,
    ) -> None:
        """Take the number of decisions that the leader applies at a time."""
        self._db = db
        self._policy = policy
        self._questions = questions
        self._job_control = job_control
        self._limit = limit
        self._isolation = Isolation(db, "decisions", lambda id: f"pending decision {id}")

    def sweeps(self) -> Sequence[Sweep]:
        """Return the sweep of decisions that are due."""
        return [
            Sweep(
                name="decisions",
                description="applies answers and cancels whose undo window has ended",
                run=partial(repeat, self.apply_due, self._limit),
                isolations=(self._isolation,),
                due=DueTime(DueTurn.QUESTIONS, store.DECISIONS_DUE),
            )
        ]

    async def answer(
        self,
        job: int,
        ordinal: int,
        response: Response,
        actor: Actor,
        window: float,
        *,
        only: bool = False,
    ) -> Verdict | PendingDecision:
        """Hold a response for `window` seconds; return the verdict if it takes effect at once.

        It does if there is no window, if the question closes or expires before the end of the
        window, and if it is refused. Raises as `Questions.answer` does, and Refused if the person
        has a pending decision on the question.
        """
        actor = self._policy.resolve(actor)

        async def work(conn: Connection) -> Verdict | PendingDecision:
            await self._questions.lock_identical(conn, job, ordinal)
            locked = await self._questions.lock(conn, job, ordinal)
            question = locked.question
            event = response.source_event_id
            reading.check_kind(question, response)
            payload, _ = reading.interpret(question, response)
            refused, voter = await self._questions.refusal(conn, locked, response, actor)
            votes = await question_store.votes(conn, job, ordinal)
            repeated = response.decision is Decision.APPROVE and voter in votes
            is_refused = refused is not None or repeated
            if (
                window <= 0
                or is_refused
                or not await question_store.stays_open(conn, job, ordinal, window)
                or await question_store.previous_answer(conn, job, ordinal, event)
            ):
                record = self._recorder(only=only)
                return await record(conn, job, ordinal, response, actor)
            fields = response.model_dump(
                mode="json", exclude={"source_event_id"}, exclude_defaults=True, exclude_none=True
            )
            if only:
                fields["only"] = True
            held = await store.hold(
                conn,
                job,
                question=ordinal,
                actor=actor,
                event=event,
                decision=fields,
                payload=payload,
                seconds=window,
            )
            if held is None:
                raise Refused("has your decision; undo it to decide again", subject=question.name)
            return held

        return await self._db.run_transaction(work)

    async def cancel(
        self,
        job: int,
        actor: Actor,
        reason: str | None,
        *,
        force: bool,
        event: str,
        window: float,
    ) -> CancelResult | PendingDecision:
        """Hold the cancel of a job for `window` seconds; without a window, cancel it at once.

        Raises as `JobControl.cancel` does, and Refused if the person has a pending cancel of it.
        """
        actor = self._policy.resolve(actor)

        async def work(conn: Connection) -> CancelResult | PendingDecision:
            if window <= 0:
                return await self._job_control.cancel_in(conn, job, actor, reason, force=force)
            await self._job_control.check_cancelable(conn, job, actor)
            fields = {"force": force, "reason": reason}
            held = await store.hold(
                conn,
                job,
                question=None,
                actor=actor,
                event=event,
                decision=fields,
                payload=None,
                seconds=window,
            )
            if held is None:
                raise Refused("is being canceled by you", subject=job_name(job))
            return held

        return await self._db.run_transaction(work)

    async def of_question(self, job: int, ordinal: int, actor: Actor) -> PendingDecision | None:
        """Return the decision of a person on a question, while it can be undone."""
        voter = self._policy.resolve(actor).voter
        async with self._db.connection() as conn:
            return await store.of_question(conn, job, ordinal, voter)

    async def newest_of(self, actor: Actor, job: int | None = None) -> PendingDecision | None:
        """Return the newest decision of a person that can be undone: of a job, or of any."""
        voter = self._policy.resolve(actor).voter
        async with self._db.connection() as conn:
            return await store.newest_of(conn, voter, job)

    async def has_leader(self) -> bool:
        """Return whether a leader applies the decisions that are due."""
        async with self._db.connection() as conn:
            return await store.has_leader(conn)

    async def undo(self, decision: PendingDecision) -> bool:
        """Undo a decision; False if it has taken effect, or was undone before."""
        return await self._db.run_transaction(lambda conn: store.undo(conn, decision.id))

    async def apply(self, decision: PendingDecision, *, early: bool = False) -> Effect | None:
        """Apply a decision that is due; return its effect, also if another process applied it.

        None if it was undone, or is not due; with `early`, its own person also applies it before.
        Raises the error of a decision that cannot take effect any more, and then forgets it.
        """

        async def work(conn: Connection) -> Effect | DraftsmanError | None:
            await self._lock(conn, decision)
            if not await store.take(conn, decision.id, early=early):
                return await self._earlier_effect(conn, decision)
            effect = await self._effect(conn, decision)
            await store.finish(conn, decision.id)
            return effect

        effect = await self._db.run_transaction(work)
        if isinstance(effect, DraftsmanError):
            raise effect
        return effect

    async def apply_when_due(self, decision: PendingDecision, seconds: float) -> Effect | None:
        """Apply a decision at the end of its window, in `seconds`; return its effect as `apply`.

        The loop of each process that holds decisions; the leader applies them if it ends. While the
        database cannot be reached, it tries again. None if the decision was undone.
        """
        early = 0
        await asyncio.sleep(seconds)
        while True:
            with contextlib.suppress(DatabaseUnreachable):
                effect = await self.apply(decision)
                early += 1
                if effect is not None or early == EARLY_ATTEMPTS:
                    return effect
            await asyncio.sleep(RETRY)

    async def apply_due(self, term: LeaderTerm) -> int:
        """Apply the decisions that are due, for the leader; return their number."""
        async with self._db.connection() as conn:
            decisions = await store.due(conn, term, self._limit, self._isolation.aside)
        return await self._isolation.each(
            [(decision.id, decision) for decision in decisions], self._apply_due
        )

    async def _apply_due(self, decision: PendingDecision) -> int:
        try:
            await self.apply(decision)
        except _FINAL as error:
            _log.warning("the decision of %s is void: %s", decision.voter, error)
        return 1

    async def _lock(self, conn: Connection, decision: PendingDecision) -> None:
        """Lock the job before its question and the decision, as every writer does."""
        if decision.question is None:
            await jobs.lock_to_cancel(conn, decision.job)
        else:
            await self._questions.lock_identical(conn, decision.job, decision.question)
            await self._questions.lock(conn, decision.job, decision.question)

    async def _effect(self, conn: Connection, decision: PendingDecision) -> Effect | DraftsmanError:
        """Make the change of a decision, or return why it is void, with the change undone."""
        actor = self._policy.resolve(decision.actor)
        job = decision.job
        ordinal = decision.question
        try:
            with translate_errors():
                async with conn.transaction():
                    if ordinal is None:
                        reason = decision.reason
                        force = decision.is_forced
                        return await self._job_control.cancel_in(
                            conn, job, actor, reason, force=force
                        )
                    until = decision.applies_at
                    record = self._recorder(only=decision.only)
                    return await record(conn, job, ordinal, decision.response, actor, until)
        except _FINAL as error:
            return error

    def _recorder(self, *, only: bool) -> Callable[..., Awaitable[Verdict]]:
        return self._questions.record if only else self._questions.record_all

    async def _earlier_effect(self, conn: Connection, decision: PendingDecision) -> Effect | None:
        """Return the effect of a decision that another process applied; None if there is none."""
        job = decision.job
        ordinal = decision.question
        if ordinal is None:
            locked = await jobs.lock_to_cancel(conn, job)
            if locked is None or not (locked.canceling or locked.status is Status.CANCELED):
                return None
            return CancelResult(job, locked.status, locked.status is Status.RUNNING)
        event = decision.source_event_id
        previous = await question_store.previous_answer(conn, job, ordinal, event)
        if previous is None:
            return None
        locked_question = await self._questions.lock(conn, job, ordinal)
        refused = stored_reason(locked_question, previous)
        votes = await question_store.votes(conn, job, ordinal)
        verdict = locked_question.verdict(previous.accepted, refused, duplicate=True)
        return replace(verdict, votes=len(votes))
