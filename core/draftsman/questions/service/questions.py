"""Questions and answers; every question is resolved exactly once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from draftsman.database.database import Connection, Database, on_connection
from draftsman.errors import NotPermitted, QuestionClosed, Refused, UsageError
from draftsman.formats.amounts import COUNT_LIMIT
from draftsman.ids import unknown_question
from draftsman.jobs.job import Status
from draftsman.jobs.runs.store import jobs
from draftsman.people.actor import Actor
from draftsman.people.policy import Policy, Verb
from draftsman.people.spans import Spans, encode_spans, spans_text
from draftsman.questions import answer as reading
from draftsman.questions import answer as refusals
from draftsman.questions.answer import Answer, LockedQuestion, Verdict
from draftsman.questions.question import (
    Decision,
    IdenticalQuestion,
    OnChanges,
    OpenQuestion,
    Question,
    QuestionCounts,
    QuestionStatus,
    Resolution,
)
from draftsman.questions.rights import check_response, may_respond, waits_for
from draftsman.questions.service import approval_tokens
from draftsman.questions.store import questions
from draftsman.questions.store import questions as store

if TYPE_CHECKING:
    from draftsman.questions.response import Response


Cursor = store.QuestionCursor | None
MAX_REFUSALS_PER_VOTER: Final = 20
"""Maximum number of stored refused answers of a voter to a question; others are counted."""
MAX_REFUSALS: Final = 200
"""Maximum number of stored refused answers to a question."""


class Questions:
    """Answering and extending questions."""

    def __init__(self, db: Database, policy: Policy) -> None:
        self._db = db
        self._policy = policy

    of_key = on_connection(store.of_key)

    async def of_job(self, job: int) -> tuple[list[Question], list[Answer]]:
        """Return the questions of a job and all answers to them."""
        async with self._db.connection() as conn:
            return await store.of_job(conn, job), await store.answers(conn, job)

    async def open(
        self,
        job: int | None = None,
        limit: int = 200,
        after: Cursor = None,
        *,
        fold_for: Actor | None = None,
    ) -> Sequence[OpenQuestion]:
        """Return open questions of a job, or after a cursor, soonest expiry first.

        With `fold_for`, of identical questions only the first, marked if they wait for that person;
        for a person who may answer only their own questions, also the first of these.
        """
        if job is not None:
            return await self.open_of([job])
        async with self._db.connection() as conn:
            viewer = None if fold_for is None else self._policy.answers_only_own(fold_for)
            questions = await store.open_questions(conn, limit, after, viewer)
        return questions if fold_for is None else self.marked(questions, fold_for)

    def marked(self, questions: Sequence[OpenQuestion], viewer: Actor) -> list[OpenQuestion]:
        """Return open questions, marked if they wait for the viewer."""
        viewer = self._policy.resolve(viewer)
        return [
            replace(
                question,
                for_viewer=waits_for(self._policy, viewer, question),
                decided_by_viewer=question.decided_by == viewer.voter,
            )
            for question in questions
        ]

    async def counts(self, viewer: Actor) -> QuestionCounts:
        """Return the number of open questions that `open` folds for a person."""
        viewer = self._policy.resolve(viewer)
        async with self._db.connection() as conn:
            only_own = self._policy.answers_only_own(viewer)
            groups = await store.counts(conn, only_own, COUNT_LIMIT)
        return QuestionCounts(
            open=sum(group.count for group in groups),
            for_you=sum(group.count for group in groups if waits_for(self._policy, viewer, group)),
        )

    open_of = on_connection(store.open_of)

    async def get(self, job: int, ordinal: int) -> Question:
        """Return a question; raises NotFound."""
        async with self._db.connection() as conn:
            question = await store.get(conn, job, ordinal)
        if question is None:
            raise unknown_question(job, ordinal)
        return question

    async def answer(
        self, job: int, ordinal: int, response: Response, actor: Actor, *, only: bool = False
    ) -> Verdict:
        """Record a response, also to identical questions unless `only` this is answered.

        Refused and late responses are stored with a reason and returned as a Verdict that is not
        accepted. Raises NotFound, and UsageError for an invalid choice, which is not stored.
        """
        actor = self._policy.resolve(actor)
        record = self.record if only else self.record_all
        return await self._db.run_transaction(
            lambda conn: record(conn, job, ordinal, response, actor)
        )

    async def refuse(
        self, job: int, ordinal: int, response: Response, actor: Actor, reason: str
    ) -> None:
        """Store a response that a channel refused before it checked permissions, once.

        Raises NotFound.
        """
        fields = response.model_dump(
            mode="json",
            include={"decision", "text", "reason", "comments"},
            exclude_none=True,
            exclude_defaults=True,
        )

        async def work(conn: Connection) -> None:
            question = (await self.lock(conn, job, ordinal)).question
            event = response.source_event_id
            payload = fields
            if response.choice is not None:
                payload, _ = reading.interpret(question, response)
            if await store.previous_answer(conn, job, ordinal, event) is None:
                await self._store(
                    conn,
                    question,
                    actor,
                    voter=actor.voter,
                    event=event,
                    payload=payload,
                    refused=reason,
                )

        await self._db.run_transaction(work)

    async def extend(
        self, job: int, ordinal: int, by: float | datetime | None, actor: Actor
    ) -> datetime | None:
        """Extend the expiry of a question by seconds, or to a time (None: never expires).

        Return the new expiry. Raises UsageError, NotFound, NotPermitted, QuestionClosed, and
        Refused for a question that was asked without an expiry, or has none to remove.
        """
        actor = self._policy.resolve(actor)

        async def work(conn: Connection) -> datetime | None:
            locked = await self.lock(conn, job, ordinal)
            return await extend(conn, self._policy, locked, by, actor)

        return await self._db.run_transaction(work)

    async def mint_token(self, job: int, ordinal: int, approver: str, actor: Actor) -> str:
        """Return a new single-use token; see `approval_tokens.mint`."""
        return await approval_tokens.mint(self._db, self._policy, job, ordinal, approver, actor)

    async def record(
        self,
        conn: Connection,
        job: int,
        ordinal: int,
        response: Response,
        actor: Actor,
        held_until: datetime | None = None,
    ) -> Verdict:
        """Record a response, as `answer` does, in a transaction of the caller.

        With `held_until`, the end of its undo window, it is late if the question expired before.
        """
        locked = await self.lock(conn, job, ordinal)
        question = locked.question
        event = response.source_event_id
        if previous := await store.previous_answer(conn, job, ordinal, event):
            stored = refusals.stored_reason(locked, previous)
            was_late = bool(previous.payload.get("late"))
            verdict = locked.verdict(previous.accepted, stored, duplicate=True, is_late=was_late)
            return await self._with_votes(conn, verdict, previous.voter)
        reading.check_kind(question, response)
        payload, resolution = reading.interpret(question, response)
        refused, voter = await self.refusal(conn, locked, response, actor)
        is_late = refused is None and not locked.takes_answers(held_until)
        if is_late:
            refused = refusals.closed_reason(locked)
        if refused is None and response.decision is not None:
            votes = await store.votes(conn, job, ordinal)
            if response.decision is Decision.APPROVE and voter in votes:
                refused = refusals.repeated_vote_reason(voter)
            else:
                resolution = reading.tally(question, response.decision, voter, votes)
        if is_late and refused is not None:
            payload["late"] = True
        reason = None if refused is None else spans_text(refused)
        if refused is not None and not is_late:
            payload["refusal"] = encode_spans(refused)
        await self._store(
            conn, question, actor, voter=voter, event=event, payload=payload, refused=reason
        )
        if refused is not None:
            verdict = locked.verdict(False, refused, is_late=is_late)
            return await self._with_votes(conn, verdict, voter)
        if response.token is not None:
            await approval_tokens.spend(conn, response.token, actor)
        if resolution is None:
            return replace(locked.verdict(True, None), votes=len(votes) + 1)
        resolution = replace(
            resolution,
            by=resolution.by or (voter,),
            reason=response.reason,
            comments=response.comments,
            self_approved=resolution.outcome == "approved" and locked.invoker == voter,
        )
        status = await self._resolve(conn, question, resolution, actor)
        return replace(
            locked.verdict(True, None),
            resolved=True,
            resolution=resolution.as_json(),
            answer_text=question.answer_text(resolution.as_json()),
            job_status=status,
        )

    async def record_all(
        self,
        conn: Connection,
        job: int,
        ordinal: int,
        response: Response,
        actor: Actor,
        held_until: datetime | None = None,
    ) -> Verdict:
        """Record a response, as `record` does, and if it counts to identical questions too.

        A question that the actor may not answer stays open, and so does that of a job which asks in
        the meantime.
        """
        others = await self.lock_identical(conn, job, ordinal)
        verdict = await self.record(conn, job, ordinal, response, actor, held_until)
        if not (verdict.accepted and verdict.resolved) or verdict.duplicate:
            return verdict
        answered = []
        for other in others:
            locked = await self.lock(conn, other.job, other.question)
            refused, _ = await self.refusal(conn, locked, response, actor)
            if refused is None and locked.takes_answers(held_until):
                await self.record(conn, other.job, other.question, response, actor, held_until)
                answered.append(other.name)
        return replace(verdict, also=tuple(answered))

    async def _with_votes(self, conn: Connection, verdict: Verdict, voter: str) -> Verdict:
        """Return a refused verdict that says whether a response of this voter counts already."""
        votes = await store.votes(conn, verdict.job, verdict.question)
        counted = (verdict.resolution or {}).get("by", ()) if verdict.resolved else votes
        recorded = not verdict.accepted and voter in counted
        return replace(verdict, recorded=recorded, votes=len(votes))

    async def _store(
        self,
        conn: Connection,
        question: Question,
        actor: Actor,
        voter: str,
        event: str,
        payload: dict[str, Any],
        refused: str | None,
    ) -> None:
        """Store an answer, of which the database writes the event; past a limit, count refusals."""
        job = question.job
        ordinal = question.ordinal
        if refused is not None:
            by_voter, total = await store.refused(conn, job, ordinal, voter)
            if by_voter >= MAX_REFUSALS_PER_VOTER or total >= MAX_REFUSALS:
                await store.count_refused(conn, job, ordinal, voter, refused)
                return
        await store.record(conn, question, actor, voter, event, payload, refused)

    async def _resolve(
        self, conn: Connection, question: Question, resolution: Resolution, actor: Actor
    ) -> Status | None:
        error = "denied" if reading.fails_job(question, resolution) else None
        return await store.resolve(
            conn,
            question,
            resolution,
            actor=actor.name,
            status=QuestionStatus.ANSWERED,
            job_status=Status.FAILED if error else Status.RESUMED,
            kind="answer_received",
            error=error,
        )

    async def refusal(
        self, conn: Connection, locked: LockedQuestion, response: Response, actor: Actor
    ) -> tuple[Spans | None, str]:
        """Return the refusal reason, None if the actor may respond, and the voter's name."""
        question = locked.question
        voter = actor.voter
        try:
            if response.token is not None:
                voter = await approval_tokens.redeemable_by(
                    conn, self._policy, question, response.token, actor, invoker=locked.invoker
                )
            else:
                check_response(self._policy, actor, question, invoker=locked.invoker)
        except NotPermitted as error:
            return refusals.permission_reason(error), voter
        return None, voter

    async def open_review(
        self, conn: Connection, job: int, actor: Actor, invoker: str
    ) -> Question | None:
        """Return the open approval of work that tells its agent what this person wants changed.

        None also for a person who may not decide it; `invoker` requested the job.
        """
        requester = self._policy.requester(invoker)
        for question in await store.of_job(conn, job):
            if (
                question.status is QuestionStatus.OPEN
                and question.on_changes is OnChanges.TELL
                and may_respond(self._policy, actor, question, invoker=requester)
            ):
                return question
        return None

    async def lock_identical(
        self, conn: Connection, job: int, ordinal: int
    ) -> list[IdenticalQuestion]:
        """Lock a job together with those that ask the same; return their questions."""
        if others := await questions.identical_questions(conn, job, ordinal):
            await jobs.lock_jobs(conn, [job, *(other.job for other in others)])
            others = await questions.identical_questions(conn, job, ordinal)
        return others

    async def lock(self, conn: Connection, job: int, ordinal: int) -> LockedQuestion:
        """Lock a job and its question; raises NotFound."""
        if (locked := await store.lock(conn, job, ordinal)) is None:
            raise unknown_question(job, ordinal)
        return replace(locked, invoker=self._policy.requester(locked.invoker))


# Extensions of the expiry of open questions.


MAX_EXTENSION: Final = 86_400.0 * 366


async def extend(
    conn: Connection,
    policy: Policy,
    locked: LockedQuestion,
    by: float | datetime | None,
    actor: Actor,
) -> datetime | None:
    """Extend the expiry of a locked question by seconds, or to a time; return the new expiry.

    A time that is not later than the expiry changes nothing. An expiry that was removed is extended
    by seconds, by operators only. Raises as `Questions.extend`.
    """
    question = locked.question
    never_expires = question.status is QuestionStatus.OPEN and question.expires_at is None
    policy.check(actor, Verb.EXTEND, invoker=None if never_expires else locked.invoker)
    if never_expires and not isinstance(by, float | int):
        raise _never_expires(question)
    if isinstance(by, datetime):
        current = question.expires_at or by
        if question.status is QuestionStatus.OPEN and by <= current:
            return question.expires_at
        by = max(1.0, (by - current).total_seconds())
    if by is not None and not 0 < by <= MAX_EXTENSION:
        raise UsageError("an extension must be longer than 0 and at most 366 days")
    job = question.job
    ordinal = question.ordinal
    was_open, expires_at = await store.extend(conn, job, ordinal, by, actor.name)
    if not was_open:
        raise QuestionClosed(spans_text(refusals.closed_reason(locked)))
    if by is not None and expires_at is None:
        raise _never_expires(question)
    return expires_at


def _never_expires(question: Question) -> Refused:
    return Refused(f"{question.name} never expires; nothing to extend")
