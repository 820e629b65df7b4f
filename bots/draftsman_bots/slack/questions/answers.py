"""Submission of answers and decisions, and the replies to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from draftsman.errors import NotPermitted
from draftsman.ids import job_name
from draftsman.questions.answer import Verdict
from draftsman.questions.question import Question
from draftsman.questions.response import Response
from draftsman_bots.conversation.answers import is_shown_by_question
from draftsman_bots.conversation.job_controls import pause_note
from draftsman_bots.conversation.replies import verdict_spans
from draftsman_bots.slack.deliveries.mrkdwn import escape_truncated, mention_spans
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
    return await submit_answer(ctx, actor, job, question, response)


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


async def submit_answer(
    ctx: BotContext, actor: Actor, job: int, question: int, response: Response
) -> Verdict:
    """Submit a response; raises NotFound, and UsageError if it is not a choice."""
    return await ctx.rt.questions.answer(job, question, response, actor)


def choice_value(question: Question, choice: int | None) -> str | None:
    """Return the value of a choice, None if the question has no such choice."""
    if choice is None or choice > len(question.choices):
        return None
    return question.values()[choice - 1]


async def unshown_reply(ctx: BotContext, job: int, verdict: Verdict) -> Reply | None:
    """Return the reply to a response, unless the question's own message shows all of it."""
    if not is_shown_by_question(verdict):
        return await reply_to(ctx, job, verdict)
    note = await _pause_note(ctx, job, verdict)
    return Reply(note) if note else None


async def reply_to(ctx: BotContext, job: int, verdict: Verdict) -> Reply:
    """Return the reply to a response, and the pause of its job."""
    reply = verdict_reply(verdict)
    note = await _pause_note(ctx, job, verdict)
    return Reply(f"{reply.text} {note}") if note else reply


async def _pause_note(ctx: BotContext, job: int, verdict: Verdict) -> str:
    resume = f"{ctx.settings.command} resume {job_name(job)}"
    return escape_truncated(await pause_note(ctx.rt, job, verdict, resume))


def verdict_reply(verdict: Verdict) -> Reply:
    """Return the reply to a response."""
    return Reply(mention_spans(verdict_spans(verdict)))
