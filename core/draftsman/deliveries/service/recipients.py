"""The people that a message is for, and who of them it mentions."""

from __future__ import annotations

from collections.abc import Sequence

from draftsman.channels import ChannelName
from draftsman.deliveries.message_facts import MessageFacts
from draftsman.people.policy import Person, Policy
from draftsman.people.visibility import may_see
from draftsman.questions.question import IdenticalQuestion, Question, QuestionKind


def requester(policy: Policy, invoker: str, channel: ChannelName) -> str | None:
    """Return the channel id of the job's requester; None where there is none.

    A requesting board, `CHANNEL:board:ID`, has none.
    """
    if (person := policy.people.get(invoker)) is not None:
        return person.ids.get(channel)
    source, _, channel_id = invoker.partition(":")
    return None if source != channel or ":" in channel_id else channel_id or None


def addressees(
    policy: Policy, question: Question, invoker: str, channel: ChannelName, repo: str | None
) -> tuple[Person, ...]:
    """Return the people that a question about a repository is addressed to.

    For an approval these are the approvers; otherwise the invoker and the people it escalated to,
    or everyone who may answer where none of them can be reached in the channel.
    """
    approval = question.kind is QuestionKind.APPROVAL
    eligible = policy.eligible_people(question.approvers, invoker, approval=approval, repo=repo)
    if approval:
        return tuple(eligible)
    addressed_names = policy.approvers(question.approvers) | {invoker}
    nearest = [person for person in eligible if person.name in addressed_names]
    channel_id = None if invoker in policy.people else requester(policy, invoker, channel)
    if channel_id is not None:
        account = Person(invoker, frozenset(), {channel: channel_id})
        nearest += [account] * may_see(account, repo)
    return tuple(nearest or eligible)


def unmentioned_people(
    policy: Policy,
    question: Question,
    facts: MessageFacts,
    recipients: Sequence[Person],
    identical_questions: Sequence[IdenticalQuestion],
) -> frozenset[str]:
    """Return the recipients whom a message in a shared target does not mention.

    Of a question with a ladder, only the requester is mentioned: steps notify the others. Of
    identical questions, people are mentioned with the first; those who have the question in a
    digest are not mentioned.
    """
    if any(other.is_earlier for other in identical_questions):
        return frozenset(person.name for person in recipients)
    asker = policy.requester(facts.invoker_id)
    return frozenset(
        person.name
        for person in recipients
        if (facts.ladder is not None and person.name != asker)
        or not (question.critical or person.free_at(facts.now) <= facts.now)
    )
