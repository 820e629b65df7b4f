"""Submission of answers and decisions, and the replies to them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from draftsman.errors import NotPermitted
from draftsman.questions.answer import Verdict
from draftsman.questions.question import Question
from draftsman.questions.response import Response
from draftsman_bots.conversation.answers import is_shown_by_question
from draftsman_bots.conversation.attention import AttentionReply
from draftsman_bots.conversation.commands import Surface
from draftsman_bots.conversation.replies import (
    TextReply,
    Wording,
    reply_to_answer,
    verdict_spans,
)
from draftsman_bots.slack.deliveries.mrkdwn import escape_truncated, local_time, mention_spans
from draftsman_bots.slack.ephemeral import Reply
from draftsman_bots.slack.people.access import actor_of, authorize

if TYPE_CHECKING:
    from draftsman.people.actor import Actor
    from draftsman_bots.slack.context import BotContext
    from draftsman_bots.slack.payloads.payloads import SlackUser


async def submit_as(
    ctx: BotContext, user: SlackUser, job: int, question: int, response: Response
) -> Verdict:
    """Submit the response of a Slack user; raises NotPermitted, NotFound, UsageError."""
    actor = await authorize_response(ctx, user, job, question, response)
    return await ctx.rt.questions.answer(job, question, response, actor)


async def authorize_response(
    ctx: BotContext, user: SlackUser, job: int, question: int, response: Response
) -> Actor:
    """Return the actor of a response; raises NotPermitted, and records a refused response."""
    try:
        return await authorize(ctx, user)
    except NotPermitted as error:
        actor = actor_of(ctx, user)
        await ctx.rt.questions.refuse(job, question, response, actor, str(error))
        raise


def choice_value(question: Question, choice: int | None) -> str | None:
    """Return the value of a choice, None if the question has no such choice."""
    if choice is None or choice > len(question.choices):
        return None
    return question.values()[choice - 1]


async def unshown_reply(ctx: BotContext, verdict: Verdict) -> Reply | None:
    """Return the reply to a response, unless the question's own message shows all of it."""
    wording = Wording(Surface.SLACK, f"{ctx.settings.command} ")
    return spoken(await reply_to_answer(ctx.rt, wording, verdict))


async def reply_to(ctx: BotContext, verdict: Verdict) -> Reply:
    """Return the reply to a response, also where the question's own message shows the result."""
    unshown = await unshown_reply(ctx, verdict)
    if not is_shown_by_question(verdict):
        return unshown or Reply("")
    text = mention_spans(verdict_spans(verdict))
    return Reply(f"{text} {unshown.text}" if unshown else text)


def spoken(reply: TextReply | None) -> Reply | None:
    """Return a reply as an ephemeral message; None without a text."""
    if reply is None or not reply.text:
        return None
    if isinstance(reply.text, tuple):
        return Reply(mention_spans(reply.text))
    return attention_reply(reply.text)


def attention_reply(reply: AttentionReply) -> Reply:
    """Return the reply to an acknowledgment, a snooze or a delegation, with local times."""
    return Reply(replace(reply, template=escape_truncated(reply.template)).text(local_time))
