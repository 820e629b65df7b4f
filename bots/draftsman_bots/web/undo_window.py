"""Answers of pages that can still be undone, and what became of them."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from draftsman.deliveries.question_text import RESPONSES, closed_text
from draftsman.errors import DraftsmanError
from draftsman.questions.review_comment import request_text

if TYPE_CHECKING:
    from draftsman.jobs.pending_decisions.pending_decision import PendingDecision
    from draftsman.people.actor import Actor
    from draftsman.questions.question import Question
    from draftsman.runtime import Runtime

_log = logging.getLogger(__name__)


async def apply_when_due(rt: Runtime, decision: PendingDecision, seconds: float) -> None:
    """Apply an answer at the end of its undo window; the leader does if this process cannot."""
    try:
        await rt.pending_decisions.apply_when_due(decision, seconds)
    except DraftsmanError as error:
        _log.warning("the answer of %s to %s: %s", decision.voter, decision.name, error)


def entered_in(decision: PendingDecision, question: Question) -> dict[str, str]:
    """Return the fields of the form as the person filled them in."""
    response = decision.response
    text = response.text or ""
    field = "choice" if text in question.values() else "text"
    comments = "\n".join(f"{comment.place}={comment.text}" for comment in response.comments)
    only = "yes" if decision.only else ""
    reason = response.reason or ""
    return {field: text, "reason": reason, "comments": comments, "only": only}


def response_name(decision: PendingDecision) -> str:
    """Return what a response is called: `approval`, `denial`, `request for changes`, `answer`."""
    made = decision.response.decision
    return RESPONSES.get(made.outcome, "answer") if made else "answer"


def response_text(decision: PendingDecision, question: Question) -> str:
    """Return what a person answered, or the reason of a decision and its comments."""
    response = decision.response
    if response.choice is not None:
        return question.labels()[response.choice - 1]
    if response.text is not None:
        return question.label_of(response.text)
    return request_text(response.reason or "", response.comments)


async def effect_of(rt: Runtime, question: Question, actor: Actor) -> tuple[str, str]:
    """Return a note that the newest answer of a person counts, or the problem that it does not.

    Both are empty if there is none, as when it was undone, and while it can be undone.
    """
    if await rt.pending_decisions.of_question(question.job, question.ordinal, actor):
        return "", ""
    _, answers = await rt.questions.of_job(question.job)
    own = [
        answer
        for answer in answers
        if answer.question == question.ordinal and answer.voter == actor.voter
    ]
    if not own:
        return "", ""
    if own[-1].accepted:
        return "Your answer was recorded.", ""
    reason = own[-1].reason or closed_text(question)
    return "", f"Your answer does not count: {reason}."
