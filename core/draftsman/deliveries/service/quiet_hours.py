"""Messages about questions that wait for the hours of their only recipient."""

from __future__ import annotations

from typing import Final

from draftsman.channels import ChannelName
from draftsman.channels.accounts import person_target
from draftsman.deliveries.delivery import QUESTION_KINDS, ClaimedDelivery, Deferred, DeliveryKind
from draftsman.deliveries.message_facts import MessageFacts
from draftsman.formats.times import format_time
from draftsman.people.policy import Person, Policy
from draftsman.questions.question import Question

INTERRUPTING_KINDS: Final = QUESTION_KINDS | {DeliveryKind.NOTICE}
"""Kinds of messages about a question that interrupt people."""
MAX_SECONDS: Final = 6 * 3600.0
"""Maximum wait, after which the hours are checked again: they may have been changed."""


def quiet_delay(
    policy: Policy, item: ClaimedDelivery, facts: MessageFacts, question: Question | None
) -> Deferred | None:
    """Return how long a message waits for the hours of its only recipient; None: it may be sent.

    Critical questions never wait.
    """
    if question is None or question.critical or item.kind not in INTERRUPTING_KINDS:
        return None
    person = recipient(policy, item.target, item.channel)
    if person is None or (free_at := person.free_at(facts.now)) <= facts.now:
        return None
    seconds = min((free_at - facts.now).total_seconds(), MAX_SECONDS)
    until = format_time(free_at)
    return Deferred(seconds, f"{person.name} is not to be interrupted until {until}", limited=False)


def recipient(policy: Policy, target: str, channel: ChannelName) -> Person | None:
    """Return the known person who alone reads a target of a channel; None for any other target."""
    for person in policy.people.values():
        if any(person_target(channel, account) == target for account in person.accounts(channel)):
            return person
    return None
