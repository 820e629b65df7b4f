"""Questions and answers; every question is resolved exactly once."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from draftsman.database.database import Connection, Database
from draftsman.errors import NotPermitted, QuestionClosed, Refused, UsageError
from draftsman.ids import question_name
from draftsman.jobs.job import Source, Status
from draftsman.jobs.runs.run import Lease, lease_lost
from draftsman.people.actor import Actor
from draftsman.people.policy import Policy, Verb
from draftsman.people.spans import Spans, encode_spans, spans_text
from draftsman.questions import answer as reading
from draftsman.questions import answer as refusals
from draftsman.questions.answer import Answer, LockedQuestion, Verdict
from draftsman.questions.asked_question import AskedQuestion
from draftsman.questions.question import (
    BUDGET_KEY,
    OnExpire,
    OpenQuestion,
    Question,
    QuestionKind,
    QuestionStatus,
    Resolution,
)
from draftsman.questions.service import approval_tokens
from draftsman.questions.store import questions as store

if TYPE_CHECKING:
    from draftsman.attention.service.ladders import LadderChoices
    from draftsman.questions.question_spec import QuestionSpec
    from draftsman.questions.response import Response


Cursor = store.QuestionCursor | None
MAX_TIMEOUT = 86_400.0 * 366
MAX_REFUSALS_PER_VOTER: Final = 20
"""Maximum number of stored refused answers of a voter to a question; others are counted."""
MAX_REFUSALS: Final = 200
"""Maximum number of stored refused answers to a question."""


class Questions:
    """Asking, answering and extending questions."""

    def __init__(
        self,
        *,
        db: Database,
        policy: Policy,
        expires_in: float | None,
        escalate_to: str | None,
        ladders: LadderChoices,
    ) -> None:
        self.ladders = ladders
        self._db = db
        self._policy = policy
        self.eligible_approvers = policy.eligible_approvers
        self._expires_in = expires_in
        self._escalate_to = escalate_to

    def check(self, item: QuestionSpec, invoker: str) -> str | None:
        """Return the group or person that a question escalates to, None without escalation.

        Raises UsageError for a missing or unknown name, and for a quorum that cannot be reached.
        """
        escalate_to = self._escalation_target(item)
        if item.kind is QuestionKind.APPROVAL:
            self._check_quorum(item, escalate_to, invoker)
        return escalate_to

    def _check_quorum(self, item: QuestionSpec, escalate_to: str | None, invoker: str) -> None:
        names = [*self._approvers(item), *([escalate_to] if escalate_to else [])]
        eligible = set(self._policy.eligible_approvers(names, invoker))
        if self._policy.owner is not None:
            eligible.add(self._policy.owner)
        if len(eligible) < item.quorum:
            approvers = ", ".join(sorted(eligible)) or "none"
            raise UsageError(
                f"question {item.key!r} cannot reach its quorum of {item.quorum} with these"
                f" approvers: {approvers}; add approvers, or lower the quorum"
            )

    def _escalation_target(self, item: QuestionSpec) -> str | None:
        if item.on_expire is not OnExpire.ESCALATE:
            return None
        name = item.escalate_to or self._escalate_to
        if name is None:
            raise UsageError(
                f"question {item.key!r} has no escalation target; set escalate_to, or configure"
                " [questions] escalate_to"
            )
        if self._policy.people and not self._policy.knows(name):
            known_names = ", ".join(sorted({*self._policy.groups, *self._policy.people}))
            raise UsageError(
                f"question {item.key!r}: escalate_to {name!r} is not a group or person;"
                f" known: {known_names}"
            )
        return name

    async def ask(
        self,
        lease: Lease,
        item: QuestionSpec,
        *,
        answer: str | None = None,
        invoker: str = "",
        grace: float = 0,
        owners: Sequence[str] = (),
    ) -> str | None:
        """Ask a question and park the run, as `ask_all`; return its name, None if canceled."""
        questions = [AskedQuestion(item, answer)]
        names = await self.ask_all(lease, questions, invoker=invoker, grace=grace, owners=owners)
        return names[0] if names else None

    async def ask_all(
        self,
        lease: Lease,
        questions: Sequence[AskedQuestion],
        *,
        invoker: str = "",
        grace: float = 0,
        owners: Sequence[str] = (),
    ) -> Sequence[str]:
        """Ask questions and park the run; return their names, none for a canceled job.

        The timeouts start with this transaction. An answer that was submitted with the request is
        recorded in the invoker's name in the same transaction. It never applies to an approval; an
        answer that does not fit is dropped, and the question waits for people. With `grace`, in
        seconds, an answer in this time claims the job for the same worker. `owners` are the people
        who own the changed code, for the ladders. Raises LeaseLost, UsageError.
        """
        escalations = [self.check(question.item, invoker) for question in questions]

        async def work(conn: Connection) -> Sequence[int] | None:
            new = [
                await self._prepare(conn, lease.job, question, escalate_to)
                for question, escalate_to in zip(questions, escalations, strict=True)
            ]
            ordinals = await store.ask(conn, lease, new, grace=grace, owners=owners)
            for ordinal, question in zip(ordinals or (), questions, strict=False):
                await self._answer_at_once(conn, lease.job, ordinal, question, invoker)
            return ordinals

        ordinals = await self._db.run_transaction(work)
        if ordinals is None:
            raise lease_lost(lease)
        return [question_name(lease.job, ordinal) for ordinal in ordinals]

    async def _prepare(
        self, conn: Connection, job: int, question: AskedQuestion, escalate_to: str | None
    ) -> store.NewQuestion:
        item = question.item
        return store.NewQuestion(
            item,
            approvers=self._approvers(item),
            expires_in=None if item.never_expires else item.expires_in or self._expires_in,
            escalate_to=escalate_to,
            ladder=await self.ladders.of(conn, job, item),
            alternative_to=question.alternative_to,
        )

    async def _answer_at_once(
        self, conn: Connection, job: int, ordinal: int, question: AskedQuestion, invoker: str
    ) -> None:
        """Record the answer of the request, or that of a permission rule."""
        if question.answer is not None:
            await self._answer_from_request(conn, job, ordinal, question.answer, invoker)
        elif question.item.command_words is not None:
            from draftsman.questions.service.automatic_answers import answer_by_rule

            await answer_by_rule(conn, job, ordinal, question.item.command_words)

    async def of_key(self, job: int, key: str) -> Question | None:
        """Return the current question with this key, not a superseded question."""
        async with self._db.connection() as conn:
            return await store.of_key(conn, job, key)

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

        With `fold_for`, of identical questions only the first; for a person who may answer only
        their own questions, also the first of these.
        """
        if job is not None:
            return await self.open_of([job])
        async with self._db.connection() as conn:
            viewer = None if fold_for is None else self._policy.answers_only_own(fold_for)
            return await store.open_questions(conn, limit, after, viewer)

    async def open_of(self, jobs: Sequence[int]) -> Sequence[OpenQuestion]:
        """Return the open questions of these jobs, soonest expiry first."""
        async with self._db.connection() as conn:
            return await store.open_of(conn, jobs)

    async def get(self, job: int, ordinal: int) -> Question:
        """Return a question; raises NotFound."""
        async with self._db.connection() as conn:
            question = await store.get(conn, job, ordinal)
        if question is None:
            raise approval_tokens.unknown_question(job, ordinal)
        return question

    async def answer(
        self, job: int, ordinal: int, response: Response, actor: Actor, *, only: bool = False
    ) -> Verdict:
        """Record a response, also to identical questions unless `only` this is answered.

        Refused and late responses are stored with a reason and returned as a Verdict that is not
        accepted. Raises NotFound, and UsageError for an invalid choice, which is not stored.
        """
        from draftsman.questions.service.automatic_answers import answer_all

        resolved = self._policy.resolve(actor)

        async def work(conn: Connection) -> Verdict:
            if only:
                return await self.record(conn, job, ordinal, response, resolved)
            return await answer_all(self, conn, job, ordinal, response, resolved)

        return await self._db.run_transaction(work)

    async def refuse(
        self, job: int, ordinal: int, response: Response, actor: Actor, reason: str
    ) -> None:
        """Store a response that a channel refused before it checked permissions, once.

        Raises NotFound.
        """
        fields = {"decision": response.decision, "text": response.text, "reason": response.reason}
        payload = {name: value for name, value in fields.items() if value is not None}

        async def work(conn: Connection) -> None:
            question = (await self.lock(conn, job, ordinal)).question
            event = response.source_event_id
            if await store.previous_answer(conn, job, ordinal, event) is None:
                await self._store(conn, question, actor, actor.voter, event, payload, reason)

        await self._db.run_transaction(work)

    async def extend(
        self, job: int, ordinal: int, by: float | datetime | None, actor: Actor
    ) -> datetime | None:
        """Extend the expiry of a question by seconds, or to a time (None: never expires).

        Return the new expiry. Raises UsageError, NotFound, NotPermitted, QuestionClosed, and
        Refused for a question that never expires.
        """
        actor = self._policy.resolve(actor)

        async def work(conn: Connection) -> datetime | None:
            locked = await self.lock(conn, job, ordinal)
            return await extend(conn, self._policy, locked, by, actor)

        return await self._db.run_transaction(work)

    async def mint_token(self, job: int, ordinal: int, approver: str, actor: Actor) -> str:
        """Return a new single-use token; see `approval_tokens.mint`."""
        return await approval_tokens.mint(self._db, self._policy, job, ordinal, approver, actor)

    async def _answer_from_request(
        self, conn: Connection, job: int, ordinal: int, text: str, invoker: str
    ) -> None:
        """Record the answer that was submitted with the request."""
        from draftsman.questions.response import text_response

        person = Actor(Source.INTERNAL, invoker, invoker, person=invoker)
        with contextlib.suppress(UsageError):
            response = text_response(f"request:{question_name(job, ordinal)}", text)
            await self.record(conn, job, ordinal, response, self._policy.resolve(person))

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
            stored = refusals.stored_reason(question, previous)
            verdict = locked.verdict(previous.accepted, stored, duplicate=True)
            return await self._with_votes(conn, verdict, previous.voter)
        reading.check_kind(question, response)
        payload, resolution = reading.interpret(question, response)
        refused, voter = await self.refusal(conn, locked, response, actor)
        is_late = refused is None and not locked.takes_answers(held_until)
        if is_late:
            refused = refusals.closed_reason(question)
        if refused is None and question.kind is QuestionKind.APPROVAL:
            votes = await store.votes(conn, job, ordinal)
            if response.decision and voter in votes:
                refused = refusals.repeated_vote_reason(voter)
            else:
                denier = None if response.decision else voter
                resolution = reading.tally(question, [*votes, voter], denier)
        if is_late and refused is not None:
            payload["late"] = True
        reason = None if refused is None else spans_text(refused)
        if refused is not None and not is_late:
            payload["refusal"] = encode_spans(refused)
        await self._store(conn, question, actor, voter, event, payload, reason)
        if refused is not None:
            return await self._with_votes(conn, locked.verdict(False, refused), voter)
        if response.token is not None:
            await approval_tokens.spend(conn, response.token, actor)
        if resolution is None:
            return replace(locked.verdict(True, None), votes=len(votes) + 1)
        resolution = replace(
            resolution,
            by=resolution.by or (voter,),
            reason=response.reason,
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
            elif question.kind is QuestionKind.APPROVAL:
                self._policy.check_vote(actor, question.approvers, invoker=locked.invoker)
            else:
                self._policy.check_answer(
                    actor, question.approvers, invoker=locked.invoker, key=question.key
                )
        except NotPermitted as error:
            return refusals.permission_reason(error), voter
        return None, voter

    async def lock(self, conn: Connection, job: int, ordinal: int) -> LockedQuestion:
        """Lock a job and its question; raises NotFound."""
        if (locked := await store.lock(conn, job, ordinal)) is None:
            raise approval_tokens.unknown_question(job, ordinal)
        return replace(locked, invoker=self._policy.requester(locked.invoker))

    def _approvers(self, item: QuestionSpec) -> list[str]:
        role = "operator" if item.key == BUDGET_KEY else "approver"
        if item.kind is not QuestionKind.APPROVAL and role == "approver":
            return []
        if item.approvers is not None:
            return list(item.approvers)
        people = self._policy.people.items()
        return sorted(name for name, person in people if role in person.roles)


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

    A time that is not later than the expiry changes nothing. Raises as `Questions.extend`.
    """
    policy.check(actor, Verb.EXTEND, invoker=locked.invoker)
    question = locked.question
    if question.status is QuestionStatus.OPEN and question.expires_at is None:
        raise Refused(f"{question.name} never expires; nothing to extend")
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
        raise QuestionClosed(spans_text(refusals.closed_reason(question)))
    return expires_at
