"""Replies on a card to an action of a person."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from draftsman.deliveries.target import parse
from draftsman.people.actor import Actor
from draftsman_bots.trello import ids
from draftsman_bots.trello.actions import Action

if TYPE_CHECKING:
    from draftsman.people.spans import Spans
    from draftsman_bots.trello.context import BotContext

OUTCOMES: Final = {
    "pause": "job_paused",
    "resume": "job_resumed",
    "cancel": "job_canceled",
    "dismiss": "job_dismissed",
    "undismiss": "job_undismissed",
}
"""Outcomes of comments that change a job, for a counter."""


async def reply(
    context: BotContext,
    action: Action,
    job: int,
    actor: Actor,
    text: str | Spans,
    outcome: str = "replied",
) -> str:
    """Post a reply on the card, once for each action; return the outcome for a counter."""
    at = parse(ids.card_target(action.card))
    spans = (text,) if isinstance(text, str) else text
    key = f"comment:{action.id}"
    await context.rt.outbox.notice(job, key, (f"{actor.display_name}: ", *spans), at=at)
    return outcome
