"""Slack users: whether they belong to the company, their authorization, and their people."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from slack_sdk.errors import SlackApiError

from draftsman.errors import NotPermitted
from draftsman.people.actor import Actor
from draftsman.people.policy import unlinked
from draftsman.questions.question import QuestionKind
from draftsman_bots.conversation.commands import Access, Surface
from draftsman_bots.conversation.replies import Wording
from draftsman_bots.slack.deliveries.mrkdwn import error_spans
from draftsman_bots.slack.identity import NETWORK
from draftsman_bots.slack.people.user import SlackUser, UserOrigin

if TYPE_CHECKING:
    from draftsman.errors import DraftsmanError
    from draftsman.people.spans import Spans
    from draftsman.questions.question import Question
    from draftsman.runtime import Runtime
    from draftsman_bots.slack.context import BotContext


# Detection of colleagues in other workspaces of an Enterprise Grid organization.
#
# If a payload does not name the workspace's organization, the channel's sharing is looked up.
# Results are cached until the process ends.


TIMEOUT: Final = 1.0
"""Seconds for the lookup, which Slack's own request waits for."""


async def recognize(ctx: BotContext, user: SlackUser) -> None:
    """Record a user or their whole workspace as colleagues if that is verified.

    Raises DraftsmanError if the database cannot be read.
    """
    colleagues = ctx.identity.colleagues
    account = f"{user.id}@{user.team}"
    company = ctx.company
    origin = user.origin(company)
    if origin is UserOrigin.HOME and user.team not in ("", company.home, company.org):
        colleagues.add(user.team)
    if origin is not UserOrigin.UNSURE or colleagues & {user.team, account}:
        return
    if user.channel.startswith("D"):
        if await _is_configured(ctx, user):
            colleagues.add(account)
    elif user.channel and await is_internal(ctx, user.channel):
        colleagues.add(user.team)


async def _is_configured(ctx: BotContext, user: SlackUser) -> bool:
    """Return whether a user in the bot's own conversation is configured by the bare id.

    Slack resolved that id in the home organization when the conversation was opened.
    """
    people = ctx.rt.people
    stranger = await people.actor(Actor("slack", f"{user.id}@{user.team}", user.id))
    colleague = await people.actor(Actor("slack", user.id, user.id))
    return (
        stranger.person is None
        and colleague.person is not None
        and user.is_internal_channel is not False
    )


async def is_internal(ctx: BotContext, channel: str) -> bool:
    """Return whether no other organization shares the channel; False if unknown."""
    try:
        async with asyncio.timeout(TIMEOUT):
            response: Any = (await ctx.client.conversations_info(channel=channel)).data
    except (SlackApiError, *NETWORK):
        return False
    conversation = response.get("channel") or {}
    return (
        conversation.get("is_ext_shared") is False
        and conversation.get("is_pending_ext_shared") is not True
    )


async def may_be_external(ctx: BotContext, channel: str, is_shared: bool | None) -> bool:
    """Return whether the author of an event without a workspace may be of another organization.

    `is_shared` is what the event says about its channel, if it says so.
    """
    if is_shared is not None:
        return is_shared
    return not channel.startswith("D") and not await is_internal(ctx, channel)


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
    actor = await ctx.rt.people.actor(user.actor(ctx.company))
    if actor.person is not None and not user.name:
        actor = replace(actor, display_name=actor.person)
    return actor


def check_workspace(ctx: BotContext, user: SlackUser) -> None:
    """Raise NotPermitted for users of other companies, without any lookup."""
    if ctx.settings.external_users or not user.is_stranger(ctx.company):
        return
    hint = ""
    if user.origin(ctx.company) is UserOrigin.UNSURE:
        hint = f"; if it belongs to the same organization, send {ctx.settings.command} help"
    raise NotPermitted(
        "you are a member of another workspace; only members of this workspace can use"
        f" draftsman{hint}"
    )


def check_modal_access(ctx: BotContext, user: SlackUser) -> None:
    """Raise NotPermitted for external users who open a modal, without waiting.

    An unknown organization is looked up in the background, and checked at submission.
    """
    if user.origin(ctx.company) is UserOrigin.UNSURE:
        ctx.background.spawn(recognize(ctx, user))
    else:
        check_workspace(ctx, user)


async def may_answer(ctx: BotContext, actor: Actor, question: Question) -> bool:
    """Return whether a question is for this person, to show it or to send a reminder."""
    if actor.owner or actor.person is None:
        return actor.owner
    job = await ctx.rt.read_model.job(question.job)
    is_approval = question.kind is QuestionKind.APPROVAL
    repo = None if job.request is None else job.request.repo
    approvers = ctx.rt.policy.eligible_people(
        question.approvers, job.invoker_id, approval=is_approval, repo=repo
    )
    return actor.person in {person.name for person in approvers}


async def authorize_person(ctx: BotContext, user: SlackUser, channel: str = "") -> Actor:
    """Return the actor of a person; raises NotPermitted for all other users."""
    actor = await authorize(ctx, user, channel)
    require_person(ctx, user, actor)
    return actor


async def authorize_form(ctx: BotContext, user: SlackUser, target: str) -> Actor:
    """Return the actor of a person who submits a form, whose job reports to `target`.

    Raises NotPermitted, also if the channel of the target accepts no requests.
    """
    channel = target.removeprefix("slack:").partition("/")[0]
    requested_in = channel if channel != user.id else ""
    return await authorize_person(ctx, replace(user, channel=channel), requested_in)


def require_person(ctx: BotContext, user: SlackUser, actor: Actor) -> None:
    """Raise NotPermitted for an actor without a person."""
    if actor.person is None:
        # an event of the App Home lacks the workspace, and guests cannot link
        condition = "" if user.team else "as a member of this workspace, "
        raise unlinked(actor, or_else=f"{condition}send {ctx.settings.command} link")


@dataclass(frozen=True, slots=True)
class SlackConversation:
    """A user who writes or presses a control; `channel` is where requests have to be accepted."""

    ctx: BotContext
    user: SlackUser
    access: Access = Access.EVERYBODY
    channel: str = ""
    mention: str = ""
    """How a decision begins where replies are not read without it."""

    @property
    def rt(self) -> Runtime:
        """The services."""
        return self.ctx.rt

    @property
    def wording(self) -> Wording:
        """How commands are written in Slack, and decisions in a thread."""
        return Wording(Surface.SLACK, f"{self.ctx.settings.command} ", self.mention, "`")

    @property
    def account(self) -> Actor:
        """The account of the user."""
        return self.user.actor(self.ctx.company)

    async def actor(self) -> Actor:
        """Return the user; raises NotPermitted for a user without access."""
        if self.access is Access.EVERYBODY:
            return await authorize(self.ctx, self.user, self.channel)
        return await authorize_person(self.ctx, self.user, self.channel)

    def error_spans(self, error: DraftsmanError) -> Spans:
        """Return an error with a reference to its actor."""
        return error_spans(error)
