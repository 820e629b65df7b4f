"""Who starts a job with a label, or ends it with its card, and the comment to strangers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from draftsman.errors import NotPermitted
from draftsman.people.actor import Actor
from draftsman.people.policy import Verb
from draftsman_bots.trello.deliveries import markdown
from draftsman_bots.trello.records.service import boards_of
from draftsman_bots.trello.requests.refusals import LabelRefused

if TYPE_CHECKING:
    from draftsman_bots.trello.context import BotContext
    from draftsman_bots.trello.records.board import BoardConfig, Episode

WEBHOOK_WAIT: Final = 60.0
"""Seconds in which the webhook of a label arrives that a poll saw first."""


def board_actor(board: BoardConfig) -> Actor:
    """Return the actor for a member of an open board who is no person with the right.

    Members of an open board may submit jobs, and cancel them with the card.
    """
    return Actor(
        "trello",
        f"board:{board.board_id}",
        board.name,
        roles=frozenset({"invoker", "operator"}),
    )


async def member_actor(context: BotContext, member: str, name: str = "") -> Actor:
    """Return the actor of a member, with the person of the account if it is mapped."""
    actor = await context.rt.people.actor(Actor("trello", member, name or member))
    if not name and actor.person is not None:
        return replace(actor, display_name=actor.person)
    return actor


async def waits_for_webhook(context: BotContext, episode: Episode) -> bool:
    """Return whether the webhook that names the member may still arrive."""
    settings = context.settings
    if settings.is_open or settings.callback_url is None or episode.added_by is not None:
        return False
    age = await boards_of(context.rt).clock() - episode.seen_at
    return age.total_seconds() < WEBHOOK_WAIT


async def requester(
    context: BotContext, board: BoardConfig, episode: Episode, by: Actor | None
) -> Actor:
    """Return who submits the job of a label; `by` is its member, if this process has the name.

    Raises LabelRefused.
    """
    if by is None or by.id != episode.added_by:
        by = await member_actor(context, episode.added_by) if episode.added_by else None
    if by is not None and by.person is not None and _may_submit(context, by):
        return by
    if context.settings.is_open:
        return board_actor(board)
    if by is None:
        once = f"stranger:{episode.card}"
        raise LabelRefused("it is not known who added the label", _unknown(context), once)
    once = f"stranger:{episode.card}:{by.id}"
    raise LabelRefused(f"{by.name} may not submit jobs", _refusal(context, by), once)


def _may_submit(context: BotContext, actor: Actor) -> bool:
    try:
        context.rt.policy.check(actor, Verb.SUBMIT)
    except NotPermitted:
        return False
    return True


def _refusal(context: BotContext, by: Actor) -> str:
    """Return the comment to a member who may not submit, with who can change that."""
    names = ", ".join(context.rt.policy.holders(Verb.BOARDS))
    operator = markdown.escape(f"an operator ({names})" if names else "an operator")
    if by.person is not None:
        problem = f"may not submit jobs. Ask {operator} for the role `invoker`"
    else:
        command = f"draftsman people set NAME --account {by.name} --role invoker"
        problem = f"is not linked to a person. {operator.capitalize()} can run `{command}`"
    return (
        f"No job was started: {markdown.one_line(by.display_name, 200)} {problem}. Then add the"
        " label again."
    )


def _unknown(context: BotContext) -> str:
    """Return the comment to a label whose member is not known."""
    start = "No job was started: it is not known who added the label."
    if context.settings.callback_url is not None:
        return (
            f"{start} Trello names no member for a card that is copied or moved with its label. A"
            " person who may submit jobs can add the label again."
        )
    return (
        f"{start} Trello names the member only to webhooks. An operator can set `callback_url` in"
        ' `[trello]`, or `members = "may_submit"`: every member of the board may then start jobs.'
    )
