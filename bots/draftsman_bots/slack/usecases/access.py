"""Authorization of Slack users, and their mapping to people."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from draftsman.domain.job import Source
from draftsman.domain.people.actor import Actor
from draftsman.domain.question import QuestionKind
from draftsman.errors import NotPermitted
from draftsman_bots.slack.parsers.users import UserOrigin
from draftsman_bots.slack.usecases.organization import recognize

if TYPE_CHECKING:
    from draftsman.domain.question import Question
    from draftsman_bots.slack.context import BotContext
    from draftsman_bots.slack.parsers.payloads import SlackUser


class ChannelNotAllowed(NotPermitted):
    """Requests are not accepted in this channel."""

    def __init__(self, channels: tuple[str, ...]) -> None:
        super().__init__(f"requests are accepted in other channels: {', '.join(channels)}")
        self.channels = channels


async def authorize(desk: BotContext, who: SlackUser, channel: str = "") -> Actor:
    """Return the actor, with or without a person; raises NotPermitted for external users.

    Raises ChannelNotAllowed if the channel accepts no requests; direct messages are always allowed.
    """
    await recognize(desk, who)
    check_workspace(desk, who)
    allowed = desk.settings.channels
    if allowed and channel and not channel.startswith("D") and channel not in allowed:
        raise ChannelNotAllowed(allowed)
    actor = await desk.rt.people.actor(actor_of(desk, who))
    if actor.person is not None and not who.name:
        actor = replace(actor, display_name=actor.person)
    return actor


def check_workspace(desk: BotContext, who: SlackUser) -> None:
    """Raise NotPermitted for users of other companies, without any lookup."""
    if desk.settings.strangers or not who.is_stranger(*desk.own):
        return
    hint = ""
    if who.origin(*desk.own[:2]) is UserOrigin.UNSURE:
        hint = f"; if it belongs to the same organization, send {desk.settings.command} help"
    raise NotPermitted(
        "you are a member of another workspace; only members of this workspace can use"
        f" draftsman{hint}"
    )


def check_modal_access(desk: BotContext, who: SlackUser) -> None:
    """Raise NotPermitted for external users who open a modal, without waiting.

    An unknown organization is looked up in the background, and checked at submission.
    """
    if who.origin(*desk.own[:2]) is UserOrigin.UNSURE:
        desk.background.spawn(recognize(desk, who))
    else:
        check_workspace(desk, who)


def actor_of(desk: BotContext, who: SlackUser) -> Actor:
    """Return the actor of a Slack user, without a person."""
    return Actor(Source.SLACK, who.account(*desk.own), who.name or who.id)


async def may_answer(desk: BotContext, actor: Actor, question: Question) -> bool:
    """Return whether a question is for this person, to show it or to send a reminder."""
    if actor.owner or actor.person is None:
        return actor.owner
    invoker = (await desk.rt.read_model.job(question.job)).invoker_id
    gate = question.kind is QuestionKind.APPROVAL
    asked = desk.rt.policy.answering(question.approvers, invoker, gate=gate)
    return actor.person in {person.name for person in asked}


async def authorize_person(desk: BotContext, who: SlackUser, channel: str = "") -> Actor:
    """Return the actor of a person; raises NotPermitted for all other users."""
    actor = await authorize(desk, who, channel)
    if actor.person is None:
        known = ", ".join(sorted(desk.rt.policy.people)) or "none configured"
        # an event of the App Home does not say whose people they are, and guests cannot link
        here = "" if who.team else "as a member of this workspace, "
        raise NotPermitted(
            f"your account is not linked to a person; allowed: {known}; to link it, {here}send"
            f" {desk.settings.command} link, or ask an operator"
        )
    return actor
