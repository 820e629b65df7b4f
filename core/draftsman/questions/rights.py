"""Rights of people to answer and to decide questions. Pure."""

from __future__ import annotations

from draftsman.errors import NotPermitted
from draftsman.people.actor import Actor
from draftsman.people.policy import Policy, Verb
from draftsman.questions.question import (
    BUDGET_KEY,
    OpenQuestion,
    Question,
    QuestionGroup,
    QuestionKind,
)

Askable = Question | OpenQuestion | QuestionGroup


def check_response(policy: Policy, actor: Actor, question: Askable, *, invoker: str) -> None:
    """Raise NotPermitted unless the actor may answer or decide a question; `invoker` of its job.

    Only an operator answers the question about a budget.
    """
    if question.kind is QuestionKind.APPROVAL:
        policy.check_vote(actor, question.approvers, invoker=invoker)
    elif question.key == BUDGET_KEY:
        policy.check(actor, Verb.BUDGET)
    else:
        policy.check_answer(actor, question.approvers, invoker=invoker)


def may_respond(policy: Policy, actor: Actor, question: Askable, *, invoker: str) -> bool:
    """Return whether the actor may answer or decide a question; `invoker` of its job."""
    return refusal(policy, actor, question, invoker=invoker) is None


def refusal(
    policy: Policy, actor: Actor, question: Askable, *, invoker: str
) -> NotPermitted | None:
    """Return why the actor may not answer or decide a question; None if the actor may."""
    try:
        check_response(policy, actor, question, invoker=invoker)
    except NotPermitted as error:
        return error
    return None


def waits_for(policy: Policy, actor: Actor, question: OpenQuestion | QuestionGroup) -> bool:
    """Return whether an open question waits for a resolved actor.

    It does for those who may respond, and neither did, alone or as one of several approvers, nor
    leave it to the people who hold it.
    """
    return (
        may_respond(policy, actor, question, invoker=policy.requester(question.requester))
        and (not question.holders or actor.voter in question.holders)
        and question.decided_by != actor.voter
        and actor.voter not in question.approved_by
    )


def responders_of(policy: Policy, question: Question, *, invoker: str, owner: str) -> list[str]:
    """Return the people who may answer a question of the invoker's job.

    `owner` is what the owner of an embedded database is called, who is first; "" for another
    database.
    """
    names = set(policy.approvers(question.approvers))
    is_approval = question.kind is QuestionKind.APPROVAL
    if not is_approval:
        names |= {name for name, person in policy.people.items() if "responder" in person.roles}
        names |= set() if owner else {invoker}
    own = {policy.login, policy.owner} if owner else set()
    has_owner = bool(own & names) or not (is_approval and names)
    return [owner] * bool(owner and has_owner) + sorted(names - own)


def missing_approvals(policy: Policy, question: OpenQuestion, *, invoker: str, owner: str) -> str:
    """Return how many approvals an approval still needs, and of whom; `owner` as above."""
    missing = question.quorum - len(question.approved_by)
    done = {*question.approved_by} | (set() if policy.self_approval else {invoker})
    people = responders_of(policy, question, invoker=invoker, owner=owner)
    names = " or ".join(name for name in people if name not in done)
    approvals = "1 more approval is" if missing == 1 else f"{missing} more approvals are"
    return f"{approvals} needed{f' ({names})' if names else ''}"


def responders_text(
    policy: Policy, question: Question, *, invoker: str, owner: str, most: int | None = None
) -> str:
    """Return the people who may answer a question, as `responders_of`.

    Of more than `most` people, the others are counted: `anna, ben and 3 more`.
    """
    people = responders_of(policy, question, invoker=invoker, owner=owner)
    votes = f"{question.quorum} of " if question.quorum > 1 else ""
    shown = people if most is None or len(people) <= most else people[: most - 1]
    more = f" and {len(people) - len(shown)} more" if len(shown) < len(people) else ""
    return votes + (", ".join(shown) or "no approvers (none are configured)") + more
