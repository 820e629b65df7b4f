"""What Slack supplies to conversations: the author of a text or a click, and how replies look."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from draftsman_bots.conversation.commands import Access, Surface
from draftsman_bots.conversation.replies import TextReply, Wording
from draftsman_bots.slack.deliveries.mrkdwn import error_spans, mention_spans
from draftsman_bots.slack.ephemeral import Reply
from draftsman_bots.slack.people.access import actor_of, authorize, authorize_person

if TYPE_CHECKING:
    from draftsman.errors import DraftsmanError
    from draftsman.people.actor import Actor
    from draftsman.people.spans import Spans
    from draftsman.runtime import Runtime
    from draftsman_bots.slack.context import BotContext
    from draftsman_bots.slack.payloads.payloads import SlackUser


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
        return actor_of(self.ctx, self.user)

    async def actor(self) -> Actor:
        """Return the user; raises NotPermitted for a user without access."""
        if self.access is Access.EVERYBODY:
            return await authorize(self.ctx, self.user, self.channel)
        return await authorize_person(self.ctx, self.user, self.channel)

    def error_spans(self, error: DraftsmanError) -> Spans:
        """Return an error with a reference to its actor."""
        return error_spans(error)


def spoken(reply: TextReply | None, *, shown: bool = False) -> Reply | None:
    """Return an ephemeral reply; with `shown`, also of what the question's message shows."""
    if reply is None:
        return None
    text = reply.whole if shown else reply.text
    return Reply(mention_spans(text)) if text else None
