"""Authorization of Slack users, and their mapping to people."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from draftsman.errors import NotPermitted
from draftsman.jobs.job import Source
from draftsman.people.actor import Actor
from draftsman.questions.question import QuestionKind
from draftsman_bots.slack.payloads.users import UserOrigin
from draftsman_bots.slack.people.organization import recognize

if TYPE_CHECKING:
    from draftsman.questions.question import Question
    from draftsman_bots.slack.context import BotContext
    from draftsman_bots.slack.payloads.payloads import SlackUser


class ChannelNotAllowed(NotPermitted):
    """Requests are not accepted in this channel."""

    def __init__(self, channels: tuple[str, ...]) -> None:
        super().__init__(f"requests are accepted in other channels: {', '.join(channels)}")
        self.channels = channels


async def authorize(ctx: BotContext, user: SlackUser, channel: str = "") -> Actor:
    """Return the actor, with or without a person; raises NotPermitted for external users.

    Raises ChannelNotAllowed if the channel accepts no requests; direct messages are always allowed.
    """
    await recognize(ctx, user)
    check_workspace(ctx, user)
    allowed = ctx.settings.channels
    if allowed and channel and not channel.startswith("D") and channel not in allowed:
        raise ChannelNotAllowed(allowed)
    actor = await ctx.rt.people.actor(actor_of(ctx, user))
    if actor.person is not None and not user.name:
        actor = replace(actor, display_name=actor.person)
    return actor


def check_workspace(ctx: BotContext, user: SlackUser) -> None:
    """Raise NotPermitted for users of other companies, without any lookup."""
    if ctx.settings.external_users or not user.is_stranger(*ctx.company):
        return
    hint = ""
    if user.origin(*ctx.company[:2]) is UserOrigin.UNSURE:
        hint = f"; if it belongs to the same organization, send {ctx.settings.command} help"
    raise NotPermitted(
        "you are a member of another workspace; only members of this workspace can use"
        f" draftsman{hint}"
    )


def check_modal_access(ctx: BotContext, user: SlackUser) -> None:
    """Raise NotPermitted for external users who open a modal, without waiting.

    An unknown organization is looked up in the background, and checked at submission.
    """
    if user.origin(*ctx.company[:2]) is UserOrigin.UNSURE:
        ctx.background.spawn(recognize(ctx, user))
    else:
        check_workspace(ctx, user)


def actor_of(ctx: BotContext, user: SlackUser) -> Actor:
    """Return the actor of a Slack user, without a person."""
    return Actor(Source.SLACK, user.account(*ctx.company), user.name or user.id)


async def may_answer(ctx: BotContext, actor: Actor, question: Question) -> bool:
    """Return whether a question is for this person, to show it or to send a reminder."""
    if actor.owner or actor.person is None:
        return actor.owner
    invoker = (await ctx.rt.read_model.job(question.job)).invoker_id
    is_approval = question.kind is QuestionKind.APPROVAL
    approvers = ctx.rt.policy.eligible_people(question.approvers, invoker, approval=is_approval)
    return actor.person in {person.name for person in approvers}


async def authorize_person(ctx: BotContext, user: SlackUser, channel: str = "") -> Actor:
    """Return the actor of a person; raises NotPermitted for all other users."""
    actor = await authorize(ctx, user, channel)
    if actor.person is None:
        people = ", ".join(sorted(ctx.rt.policy.people)) or "none configured"
        # an event of the App Home lacks the workspace, and guests cannot link
        condition = "" if user.team else "as a member of this workspace, "
        raise NotPermitted(
            f"your account is not linked to a person; allowed: {people}; to link it,"
            f" {condition}send {ctx.settings.command} link, or ask an operator"
        )
    return actor
