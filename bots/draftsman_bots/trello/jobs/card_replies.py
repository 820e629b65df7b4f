"""Replies on a card to an action of a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from draftsman.deliveries.target import parse
from draftsman_bots.trello import ids

if TYPE_CHECKING:
    from draftsman.people.actor import Actor
    from draftsman.people.spans import Spans
    from draftsman.questions.answer import Verdict
    from draftsman_bots.trello.actions import Action
    from draftsman_bots.trello.context import BotContext


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


def verdict_text(verdict: Verdict) -> str | Spans:
    """Return why a response was not accepted, or that its vote was counted."""
    if not verdict.accepted:
        reason = verdict.reason_spans or ("it was rejected",)
        return "Your answer was not accepted: ", *reason, "."
    return f"{verdict.name}: your approval was recorded, {verdict.votes} of {verdict.quorum}."
