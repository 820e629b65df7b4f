"""Rights of people to answer and to decide questions. Pure."""

from __future__ import annotations

from draftsman.people.actor import Actor
from draftsman.people.policy import Policy, Verb
from draftsman.questions.question import BUDGET_KEY, OpenQuestion, Question, QuestionKind


def check_response(
    policy: Policy, actor: Actor, question: Question | OpenQuestion, *, invoker: str
) -> None:
    """Raise NotPermitted unless the actor may answer or decide a question; `invoker` of its job.

    Only an operator answers the question about a budget.
    """
    if question.kind is QuestionKind.APPROVAL:
        policy.check_vote(actor, question.approvers, invoker=invoker)
    elif question.key == BUDGET_KEY:
        policy.check(actor, Verb.BUDGET)
    else:
        policy.check_answer(actor, question.approvers, invoker=invoker)
