"""Messages about questions that wait for the hours of their only recipient."""

from __future__ import annotations

from datetime import UTC
from typing import Final

from draftsman.database.database import Database
from draftsman.deliveries.delivery import (
    QUESTION_KINDS,
    ChannelName,
    ClaimedDelivery,
    Deferred,
    DeliveryKind,
    Message,
)
from draftsman.deliveries.message_facts import MessageFacts
from draftsman.deliveries.service.message_builder import recipient, with_identity_links
from draftsman.people.policy import Policy

PERSONAL_CHANNELS: Final = frozenset({ChannelName.SLACK})
"""Channels with private messages."""
INTERRUPTING_KINDS: Final = QUESTION_KINDS | {DeliveryKind.NOTICE}
"""Kinds of messages about a question that interrupt people."""
MAX_SECONDS: Final = 6 * 3600.0
"""Maximum wait, after which the hours are checked again: they may have been changed."""


async def quiet_delay(
    db: Database, policy: Policy, item: ClaimedDelivery, facts: MessageFacts, message: Message
) -> Deferred | None:
    """Return how long a message waits, None if it may be sent; critical questions never wait."""
    question = message.question
    is_personal = item.channel in PERSONAL_CHANNELS and item.kind in INTERRUPTING_KINDS
    if question is None or question.critical or not is_personal:
        return None
    async with db.connection() as conn:
        policy = await with_identity_links(conn, policy, item.channel)
    person = recipient(policy, item.target, item.channel)
    if person is None or (free_at := person.free_at(facts.now)) <= facts.now:
        return None
    seconds = min((free_at - facts.now).total_seconds(), MAX_SECONDS)
    until = f"{free_at.astimezone(UTC):%Y-%m-%d %H:%M UTC}"
    return Deferred(seconds, f"{person.name} is not to be interrupted until {until}", limited=False)
