"""Listener of messages and mentions: commands, replies in threads, and edits.

A mention is delivered twice, as `app_mention` and as `message`; both have the same key, and the
second has no effect.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from draftsman.deliveries.target import parse as parse_target
from draftsman.ids import job_name
from draftsman_bots.conversation.answers import VERBS
from draftsman_bots.conversation.parser import ParsedText, parse_slack
from draftsman_bots.conversation.requests import MODES, JobRequest
from draftsman_bots.conversation.resolution import Outcome, Resolved
from draftsman_bots.slack.commands.text_dispatch import dispatch_text, duplicate_reply
from draftsman_bots.slack.deliveries.blocks import section
from draftsman_bots.slack.deliveries.mrkdwn import inline_code
from draftsman_bots.slack.ephemeral import Reply, reply_of, send_ephemeral
from draftsman_bots.slack.jobs import thread_messages
from draftsman_bots.slack.payloads.payloads import MessageChange, MessageEvent, parse_message
from draftsman_bots.slack.people.access import authorize_person
from draftsman_bots.slack.questions import thread_replies
from draftsman_bots.slack.requests import job_requests
from draftsman_bots.slack.requests.job_requests import RequestOrigin, job_target

if TYPE_CHECKING:
    from draftsman_bots.slack.context import BotContext
    from draftsman_bots.slack.questions.thread_replies import ThreadText
    from draftsman_bots.slack.transport.dispatcher import EventListener

CHANGED_ANSWERS: Final = (Outcome.ANSWER_EDITED, Outcome.ANSWER_DELETED, Outcome.REPEATED)
NOT_BACKFILLED: Final = (
    Outcome.COMMAND,
    Outcome.EDITED_COMMAND,
    Outcome.MESSAGE,
    Outcome.NOT_HERE,
    Outcome.WHICH_JOB,
)
_log = logging.getLogger(__name__)


def events(ctx: BotContext) -> dict[str, EventListener]:
    """Return the listener of both events."""

    async def message(body: dict[str, Any]) -> None:
        await on_message(ctx, body, ctx.identity.bot_user or "")

    return {"message": message, "app_mention": message}


async def on_message(ctx: BotContext, body: dict[str, Any], bot: str) -> None:
    """Handle a message; raises errors after which Slack is to send it again."""
    event = parse_message(body, bot)
    if event is None:
        _log.debug("ignored a message that was not written by a person")
        return
    _send_reply(ctx, event, await reply_of(_route(ctx, event)))


async def on_missed_reply(ctx: BotContext, body: dict[str, Any], bot: str, *, notify: bool) -> None:
    """Handle a reply from the backfill as an answer; commands and messages are too old.

    `notify`: its author is notified if the answer is not accepted. Raises errors that a retry may
    fix.
    """
    event = parse_message(body, bot)
    if event is None or not event.thread:
        return
    reply = await reply_of(_answer(ctx, event))
    if notify:
        _send_reply(ctx, event, reply)


async def _answer(ctx: BotContext, message: MessageEvent) -> Reply | None:
    found = await thread_replies.resolve_message(ctx, message)
    if found is None or found.resolved.outcome in NOT_BACKFILLED:
        return None
    return await thread_replies.reply_to(ctx, message, found)


def _send_reply(ctx: BotContext, message: MessageEvent, reply: Reply | None) -> None:
    if reply is not None and ctx.background.first((message.key, message.text)):
        send_ephemeral(ctx, message.reply_target, reply)


async def _route(ctx: BotContext, message: MessageEvent) -> Reply | None:
    """Return the reply to a message, if any."""
    addressed = message.mentioned or message.private
    parsed = parse_slack(message.text, addressed=addressed)
    found = await thread_replies.resolve_message(ctx, message) if message.thread else None
    if found is not None and found.resolved.outcome in CHANGED_ANSWERS:
        return await thread_replies.reply_to(ctx, message, found)
    if message.change is MessageChange.DELETED:
        return None
    if message.change is MessageChange.EDITED and addressed:
        job = await job_requests.find_job(ctx, message)
        if job is not None:
            return await job_requests.edit_notice(ctx, message, parsed, job)
    if found is None:
        return await _outside(ctx, message, parsed, addressed=addressed)
    if not _is_command(found.parsed, found.resolved):
        return await _in_thread(ctx, message, found)
    if found.parsed.request is not None and found.resolved.questions:
        return _waiting_reply(found.resolved)
    command = _in_place(found.parsed, found.resolved)
    return await _outside(ctx, message, command, addressed=True)


async def _outside(
    ctx: BotContext, message: MessageEvent, parsed: ParsedText, *, addressed: bool
) -> Reply | None:
    """Handle a command or a request, and a text outside of the threads of jobs."""
    if not addressed:
        return await thread_replies.thread_hint(ctx, message)
    invalid_direct = message.private and (parsed.problem or not parsed.verb)
    if invalid_direct and (reply := await thread_replies.thread_hint(ctx, message)) is not None:
        return reply
    request = parsed.request
    if message.change is MessageChange.EDITED and not isinstance(request, JobRequest):
        return None
    if _is_agent_request(ctx, message, parsed):
        request = JobRequest(message.text.strip(), MODES[0])
    refs = job_requests.request_refs(
        ctx, message.channel, message.thread, message.ts, message.files
    )
    target = job_target(message.channel, message.thread or message.ts, message.user.id)
    origin = RequestOrigin(message.key, target, attachments=refs)
    if not isinstance(request, JobRequest):
        return await dispatch_text(ctx, message.user, message.channel, origin, parsed)
    origin = replace(origin, revises=await thread_messages.finished_job(ctx, message))
    actor = await authorize_person(ctx, message.user, message.channel)
    submitted = await job_requests.submit(ctx, actor, origin, request)
    # A new job posts its own message in the thread: only a duplicate is news.
    if submitted is not None and submitted.outcome == "created":
        ctx.duplicates.report(
            submitted.number,
            parse_target(origin.target),
            lambda duplicate: _send_reply(ctx, message, duplicate_reply(ctx, submitted, duplicate)),
        )
    return None


async def _in_thread(ctx: BotContext, message: MessageEvent, found: ThreadText) -> Reply | None:
    """Handle a text that is no command of the thread's job."""
    reply = await thread_replies.reply_to(ctx, message, found)
    parsed = found.parsed
    if parsed.verb and parsed.doubtful and parsed.verb not in VERBS:
        names = [question.name for question in found.resolved.questions]
        return _with_command(ctx, message, reply, names)
    return reply


def _is_command(parsed: ParsedText, resolved: Resolved) -> bool:
    """Return whether a text is executed as a command, also on a job or question elsewhere."""
    if resolved.outcome is Outcome.COMMAND:
        return True
    is_elsewhere = resolved.outcome is Outcome.NOT_HERE and bool(parsed.ref)
    return is_elsewhere or (resolved.outcome is Outcome.WHICH_JOB and not resolved.jobs)


def _waiting_reply(resolved: Resolved) -> Reply:
    names = ", ".join(question.name for question in resolved.questions)
    return Reply(
        f"A job in this thread is waiting for an answer to {names}: use its buttons. To start a new"
        " job, write outside this thread."
    )


def _is_agent_request(ctx: BotContext, message: MessageEvent, parsed: ParsedText) -> bool:
    """Return whether a text without a command is a request to the agent in its conversation.

    A single word is rather a mistyped command.
    """
    is_text = not parsed.verb
    is_posted = message.change is MessageChange.POSTED
    return (
        is_text
        and is_posted
        and message.private
        and ctx.identity.is_agent
        and (len(message.text.split()) > 1)
    )


def _with_command(
    ctx: BotContext, message: MessageEvent, reply: Reply | None, names: list[str]
) -> Reply:
    """Add to the reply to an answer how to run the text as a command instead."""
    typed = inline_code(f"{ctx.settings.command} {message.text.split(None, 1)[0]}", 100)
    note = (
        f"In this thread, a message to me answers {' or '.join(names)}. To run the command, type"
        f" {typed} outside of threads."
    )
    if reply is None:
        return Reply(note)
    blocks = [*reply.blocks, section(note)] if reply.blocks else None
    return Reply(f"{reply.text}\n{note}", blocks)


def _in_place(parsed: ParsedText, resolved: Resolved) -> ParsedText:
    """Return a command with the job of its thread, if it names none."""
    if parsed.ref or len(resolved.jobs) != 1:
        return parsed
    job = resolved.jobs[0]
    return replace(parsed, ref=job_name(job), job=job)
