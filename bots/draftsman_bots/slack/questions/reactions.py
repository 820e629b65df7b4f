"""Listener of reactions: answers, where a choice has an emoji or the settings allow decisions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from draftsman.actions import questions
from draftsman.errors import DraftsmanError
from draftsman.questions.question import Question, QuestionKind
from draftsman_bots.conversation.replies import press
from draftsman_bots.slack import ids
from draftsman_bots.slack.ephemeral import (
    Reply,
    error_reply,
    is_retryable,
    send_once,
    spoken,
)
from draftsman_bots.slack.payloads.payloads import EventPayload, ReplyTarget, Text, at
from draftsman_bots.slack.people.access import SlackConversation, may_be_external
from draftsman_bots.slack.people.user import SlackUser
from draftsman_bots.slack.records.service import SlackThreads

if TYPE_CHECKING:
    from draftsman.actions.action import Action
    from draftsman_bots.slack.context import BotContext
    from draftsman_bots.slack.transport.dispatcher import EventListener


ALIASES: Final = {"thumbsup": "+1", "thumbsdown": "-1"}
"""Names of the same emoji: events have one or the other."""
_SKIN: Final = re.compile(r"::skin-tone-[2-6]$")


class Reaction(EventPayload):
    """A reaction to a message, added or removed."""

    name: Text = at("event.reaction")
    item: Text = at("event.item.type")
    channel: Text = at("event.item.channel")
    ts: Text = at("event.item.ts")
    """The ts of the message."""
    event_ts: Text = at("event.event_ts")

    @property
    def is_to_message(self) -> bool:
        """Whether it is one to a message."""
        fields = (self.user_id, self.emoji, self.channel, self.ts)
        return self.item == "message" and all(fields)

    @property
    def user(self) -> SlackUser:
        """Its author, whose workspace no event names."""
        return SlackUser(id=self.user_id, channel=self.channel)

    @property
    def emoji(self) -> str:
        """Its canonical name."""
        return canonical(self.name)

    @property
    def key(self) -> str:
        """The idempotency key, the same for each delivery."""
        return ids.reaction_key(self.channel, self.ts, self.user_id, self.event_ts)


def canonical(emoji: str) -> str:
    """Return the name of an emoji without skin tone, and by its usual alias."""
    name = _SKIN.sub("", emoji.strip(":"))
    return ALIASES.get(name, name)


APPROVE: Final = frozenset({"+1", "white_check_mark", "heavy_check_mark"})
DENY: Final = frozenset({"-1", "x", "no_entry", "no_entry_sign"})
NOT_CONFIGURED: Final = "A reaction does not decide {}. Use its buttons."
SHARED: Final = (
    "In a channel that is shared with another organization, a reaction is no answer: it does not"
    " say which organization its author belongs to. Use the buttons."
)
KEPT: Final = "Your answer to {} stays: removing a reaction does not change it."


def events(ctx: BotContext) -> dict[str, EventListener]:
    """Return the listeners of both events."""

    async def added(body: dict[str, Any]) -> None:
        await _on_reaction(ctx, body, _added)

    async def removed(body: dict[str, Any]) -> None:
        await _on_reaction(ctx, body, _removed)

    return {"reaction_added": added, "reaction_removed": removed}


async def _on_reaction(ctx: BotContext, body: dict[str, Any], handle: Any) -> None:
    """Handle a reaction to the message of a question; raises errors that Slack may retry."""
    reaction = Reaction.model_validate(body)
    if not reaction.is_to_message or reaction.user_id == ctx.identity.bot_user:
        return
    thread = ""
    reply = None
    try:
        if (question_and_thread := await _question_of(ctx, reaction)) is not None:
            question, thread = question_and_thread
            reply = await handle(ctx, reaction, question)
    except DraftsmanError as error:
        if is_retryable(error):
            raise
        reply = error_reply(error)
    send_once(ctx, reaction.key, ReplyTarget(reaction.user_id, reaction.channel, thread), reply)


async def _question_of(ctx: BotContext, reaction: Reaction) -> tuple[Question, str] | None:
    """Return the question that a message asks, and the thread of the message or "".

    A reaction to a notice about a question is no answer.
    """
    reference = await SlackThreads(ctx.rt).question_of_message(reaction.channel, reaction.ts)
    if reference is None:
        return None
    job, ordinal = reference
    topics = await SlackThreads(ctx.rt).topics(reaction.channel, reaction.ts)
    threads = [topic.thread for topic in topics if topic.job == job and topic.thread]
    return await ctx.rt.questions.get(job, ordinal), threads[0] if threads else ""


async def _added(ctx: BotContext, reaction: Reaction, question: Question) -> Reply | None:
    text = ""
    action: Action[questions.QuestionRow, ..., Any]
    if question.kind is QuestionKind.APPROVAL:
        if reaction.emoji not in APPROVE | DENY:
            return None
        if not ctx.settings.reaction_approvals:
            first = ctx.background.first(("reaction", question.name, reaction.user.id))
            return Reply(NOT_CONFIGURED.format(question.name)) if first else None
        action = questions.approve if reaction.emoji in APPROVE else questions.deny
    else:
        action = questions.answer
        text = _chosen(question, reaction.emoji)
        if not text:
            return None
    if await may_be_external(ctx, reaction.channel, reaction.is_shared):
        return Reply(SHARED)
    row = (question.job, question.ordinal)
    conversation = SlackConversation(ctx, reaction.user)
    return spoken(await press(conversation, action, row, text, reaction.key))


def _chosen(question: Question, emoji: str) -> str:
    """Return the value of the choice with an emoji; "" without one."""
    for choice in question.choices:
        if canonical(str(choice.get("emoji") or "")) == emoji:
            return str(choice["value"])
    return ""


async def _removed(ctx: BotContext, reaction: Reaction, question: Question) -> Reply | None:
    """Tell the author of an accepted reaction that its removal changes nothing."""
    _, recorded = await ctx.rt.questions.of_job(question.job)
    prefix = ids.reaction_prefix(reaction.channel, reaction.ts, reaction.user.id)
    answered = any(
        answer.question == question.ordinal
        and answer.accepted
        and (answer.source_event_id or "").startswith(prefix)
        for answer in recorded
    )
    return Reply(KEPT.format(question.name)) if answered else None
