"""Due dates that people move: a later date extends the open questions of the card."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from draftsman.actions.action import Call
from draftsman.actions.questions import extend
from draftsman.errors import CORRECTABLE, Failure
from draftsman.formats.times import spelled_time
from draftsman.ids import question_name
from draftsman.people.actor import Actor
from draftsman_bots.trello.deliveries.due_dates import read_due
from draftsman_bots.trello.deliveries.error_text import error_text
from draftsman_bots.trello.records.service import boards_of
from draftsman_bots.trello.replies import reply
from draftsman_bots.trello.requests.label_jobs import GONE_STATUSES

if TYPE_CHECKING:
    from draftsman_bots.trello.actions import Action
    from draftsman_bots.trello.context import BotContext
    from draftsman_bots.trello.records.board import BoardConfig
    from draftsman_bots.trello.records.cards import ExpiringQuestion

SAME: Final = timedelta(seconds=1)
"""Difference of two times that are the same date in Trello."""


async def on_rescheduled(context: BotContext, board: BoardConfig, action: Action) -> str:
    """Extend the open questions of a card whose due date a person moved. Raises Failure.

    Handling an action twice is safe: an expiry that is not earlier stays.
    """
    cards = boards_of(context.rt).cards
    if not board.due_dates:
        return "ignored"
    if action.member == context.me.id:
        return "own"
    recorded = await cards.due_date(action.card)
    expiring = await cards.expiring(action.card)
    if recorded is None or not expiring or not action.member:
        return "ignored"
    if not await _is_current(context, action):
        return "outdated"
    actor = await context.rt.people.actor(
        Actor("trello", action.member, action.name or action.member)
    )
    first = expiring[0]
    if action.due is None or action.due < first.expires_at - SAME:
        text = (
            f"{_name(first)} still expires at {spelled_time(first.expires_at)}: a due date extends"
            " the expiry of a question, and never shortens it."
        )
        return await reply(context, action, first.job, actor, text, "not_extended")
    try:
        extended = await _extend(context, expiring, action.due, actor)
    except CORRECTABLE as error:
        return await reply(context, action, first.job, actor, error_text(error), "rejected")
    adopted = replace(recorded, shown=action.due, replaced=action.due, changed=True)
    await cards.change_due_date(recorded, adopted)
    text = f"{', '.join(extended)} now expires at {spelled_time(action.due)}."
    return await reply(context, action, first.job, actor, text, "extended")


async def _is_current(context: BotContext, action: Action) -> bool:
    """Return whether the card still has the due date of an action: it may arrive late."""
    try:
        return await read_due(context.trello, action.card) == action.due
    except Failure as error:
        if error.http_status in GONE_STATUSES:
            return False
        raise


async def _extend(
    context: BotContext, expiring: list[ExpiringQuestion], due: datetime, actor: Actor
) -> list[str]:
    """Extend the questions that expire before a date; return the names of those that have it."""
    names = []
    for question in expiring:
        if question.expires_at - SAME <= due:  # the date may be the last that exists
            await extend(Call(context.rt, actor), (question.job, question.question), due)
            names.append(_name(question))
    return names


def _name(question: ExpiringQuestion) -> str:
    return question_name(question.job, question.question)
