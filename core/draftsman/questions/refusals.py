"""Reasons for which an answer is refused, as spans. Pure."""

from __future__ import annotations

from draftsman.errors import NotPermitted
from draftsman.people.spans import ActorRef, Spans, actor_spans, decode_spans, spans_text
from draftsman.questions.answer import Answer
from draftsman.questions.question import Question, QuestionStatus


def permission_reason(error: NotPermitted) -> Spans:
    """Return the message of an error with a reference to the refused account."""
    if not error.actor:
        return (str(error),)
    hint = "" if error.hint is None else f"; {error.hint}"
    return ActorRef(error.actor, error.subject), f" {error.reason}{hint}"


def repeated_vote_reason(voter: str) -> Spans:
    """Return the reason for a second vote of the same person."""
    return ActorRef(voter), " has already approved; each person votes once"


def closed_reason(question: Question) -> Spans:
    """Return the reason for an answer to a question that is closed or due to expire."""
    if question.status is QuestionStatus.OPEN:
        return (f"{question.name} expired before this answer arrived",)
    resolution = question.resolution or {}
    outcome = resolution.get("outcome", question.status)
    by = actor_spans(resolution.get("by", ()))
    text = f"{question.name} was already {outcome}"
    return (f"{text} by ", *by) if by else (text,)


def stored_reason(question: Question, answer: Answer) -> Spans | None:
    """Return the reason why an answer was refused, None if it was accepted."""
    reason = closed_reason(question) if answer.payload.get("late") else ()
    reason = reason or decode_spans(answer.payload.get("refusal"))
    if reason and spans_text(reason) == answer.reason:
        return reason
    return None if answer.reason is None else (answer.reason,)
