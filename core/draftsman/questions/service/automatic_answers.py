"""Answers that no person gives to a question itself: of a rule, and to identical questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from draftsman.database.database import Connection
from draftsman.deliveries.store import deliveries
from draftsman.jobs.job import Status
from draftsman.questions.permission_rules import store as rule_store
from draftsman.questions.permission_rules.command_pattern import pattern_text
from draftsman.questions.question import (
    ALLOW_ONCE,
    IdenticalQuestion,
    QuestionStatus,
    Resolution,
)
from draftsman.questions.store import identical
from draftsman.questions.store import questions as store

if TYPE_CHECKING:
    from draftsman.people.actor import Actor
    from draftsman.people.spans import Spans
    from draftsman.questions.answer import LockedQuestion, Verdict
    from draftsman.questions.response import Response


class ResponseRecorder(Protocol):
    """The methods of `Questions` that record a response in a transaction of the caller."""

    async def record(
        self,
        conn: Connection,
        job: int,
        ordinal: int,
        response: Response,
        actor: Actor,
        held_until: datetime | None = None,
    ) -> Verdict: ...

    async def lock(self, conn: Connection, job: int, ordinal: int) -> LockedQuestion: ...

    async def refusal(
        self, conn: Connection, locked: LockedQuestion, response: Response, actor: Actor
    ) -> tuple[Spans | None, str]: ...


async def answer_by_rule(conn: Connection, job: int, ordinal: int, words: Sequence[str]) -> None:
    """Record the command of a question of this transaction, and allow it if a rule matches."""
    rule = await rule_store.decide(conn, job, ordinal, words)
    if rule is None or (locked := await store.lock(conn, job, ordinal)) is None:
        return
    text = pattern_text(rule.pattern)
    await store.resolve(
        conn,
        locked.question,
        Resolution("answered", "rule", value=ALLOW_ONCE, rule=rule.id, reason=text),
        actor="system",
        status=QuestionStatus.ANSWERED,
        job_status=Status.RESUMED,
        kind="rule_applied",
    )


async def lock_identical(conn: Connection, job: int, ordinal: int) -> list[IdenticalQuestion]:
    """Lock a job together with those that ask the same; return their questions."""
    if questions := await identical.others(conn, job, ordinal):
        await deliveries.lock_jobs(conn, [job, *(other.job for other in questions)])
        questions = await identical.others(conn, job, ordinal)
    return questions


async def answer_all(
    questions: ResponseRecorder,
    conn: Connection,
    job: int,
    ordinal: int,
    response: Response,
    actor: Actor,
    held_until: datetime | None = None,
) -> Verdict:
    """Record a response, as `Questions.record` does, and if it counts to identical questions too.

    A question that the actor may not answer stays open, and so does that of a job which asks in the
    meantime.
    """
    identical_questions = await lock_identical(conn, job, ordinal)
    verdict = await questions.record(conn, job, ordinal, response, actor, held_until)
    if not (verdict.accepted and verdict.resolved) or verdict.duplicate:
        return verdict
    answered = []
    for other in identical_questions:
        locked = await questions.lock(conn, other.job, other.question)
        refused, _ = await questions.refusal(conn, locked, response, actor)
        if refused is None and locked.takes_answers(held_until):
            await questions.record(conn, other.job, other.question, response, actor, held_until)
            answered.append(other.name)
    return replace(verdict, also=tuple(answered))
