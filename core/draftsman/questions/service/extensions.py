"""Extensions of the expiry of open questions."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from draftsman.database.database import Connection
from draftsman.errors import QuestionClosed, Refused, UsageError
from draftsman.people.actor import Actor
from draftsman.people.policy import Policy, Verb
from draftsman.people.spans import spans_text
from draftsman.questions import refusals
from draftsman.questions.answer import LockedQuestion
from draftsman.questions.question import QuestionStatus
from draftsman.questions.store import questions as store

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
        left = question.expires_at or by
        if question.status is QuestionStatus.OPEN and by <= left:
            return question.expires_at
        by = max(1.0, (by - left).total_seconds())
    if by is not None and not 0 < by <= MAX_EXTENSION:
        raise UsageError("an extension must be longer than 0 and at most 366 days")
    job, ordinal = question.job, question.ordinal
    was_open, expires_at = await store.extend(conn, job, ordinal, by, actor.name)
    if not was_open:
        raise QuestionClosed(spans_text(refusals.closed_reason(question)))
    return expires_at
