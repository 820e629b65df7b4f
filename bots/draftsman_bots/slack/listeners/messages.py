"""Listener of messages and mentions: commands, replies in threads, and edits.

A mention is delivered twice, as `app_mention` and as `message`; both have the same key, and the
second has no effect.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from draftsman.deliveries.target import parse as parse_target
from draftsman.errors import DraftsmanError
from draftsman_bots.conversation.parser import DECISIONS, ParsedText, parse_slack
from draftsman_bots.conversation.requests import MODES, JobRequest
from draftsman_bots.slack.commands.text_dispatch import dispatch_text, duplicate_reply
from draftsman_bots.slack.deliveries.blocks import section
from draftsman_bots.slack.deliveries.mrkdwn import escape_truncated
from draftsman_bots.slack.ephemeral import (
    Reply,
    ReplyTarget,
    error_reply,
    is_retryable,
    send_ephemeral,
)
from draftsman_bots.slack.jobs import thread_messages
from draftsman_bots.slack.payloads import payloads
from draftsman_bots.slack.payloads.payloads import MessageChange, MessageEvent
from draftsman_bots.slack.people.access import authorize_person
from draftsman_bots.slack.questions import thread_replies
from draftsman_bots.slack.requests import job_requests
from draftsman_bots.slack.requests.job_requests import RequestOrigin, job_target

if TYPE_CHECKING:
    from draftsman_bots.slack.context import BotContext
    from draftsman_bots.slack.transport.dispatcher import EventListener

_log = logging.getLogger(__name__)


def events(ctx: BotContext) -> dict[str, EventListener]:
    """Return the listener of both events."""

    async def message(body: dict[str, Any]) -> None:
        await on_message(ctx, body, ctx.identity.bot_user or "")

    return {"message": message, "app_mention": message}


async def on_message(ctx: BotContext, body: dict[str, Any], bot: str) -> None:
    """Handle a message; raises errors after which Slack is to send it again."""
    event = payloads.parse_message(body, bot)
    if event is None:
        _log.debug("ignored a message that was not written by a person")
        return
    try:
        reply = await _route(ctx, event)
    except DraftsmanError as error:
        if is_retryable(error):
            raise
        reply = error_reply(error)
    _send_reply(ctx, event, reply)


async def on_missed_reply(ctx: BotContext, body: dict[str, Any], bot: str, *, notify: bool) -> None:
    """Handle a reply from the backfill as an answer; commands are too old to execute.

    `notify`: its author is notified if the answer is not accepted. Raises errors that a retry may
    fix.
    """
    event = payloads.parse_message(body, bot)
    if event is None or not event.thread:
        return
    parsed = parse_slack(event.text, addressed=_is_addressed(event))
    try:
        if _is_command(event, parsed) and not await thread_replies.questions_for(
            ctx, event, parsed
        ):
            return
        reply = await thread_replies.handle_reply(ctx, event, parsed, backfilled=True)
    except DraftsmanError as error:
        if is_retryable(error):
            raise
        reply = error_reply(error)
    if notify and reply is not thread_replies.NOT_AN_ANSWER:
        _send_reply(ctx, event, reply)


def _send_reply(ctx: BotContext, message: MessageEvent, reply: Reply | None) -> None:
    if reply is not None and ctx.background.first((message.key, message.text)):
        send_ephemeral(ctx, ReplyTarget(message.user.id, message.channel, message.thread), reply)


async def _route(ctx: BotContext, message: MessageEvent) -> Reply | None:
    """Return the reply to a message, if any."""
    if message.change is not MessageChange.POSTED and await thread_replies.record_edit(
        ctx, message
    ):
        return None
    if message.change is MessageChange.DELETED:
        return None
    addressed = _is_addressed(message)
    parsed = parse_slack(message.text, addressed=addressed)
    job = (
        message.change is MessageChange.EDITED
        and addressed
        and await job_requests.find_job(ctx, message)
    )
    if job:
        return await job_requests.edit_notice(ctx, message, parsed, job)
    if message.thread:
        reply = await _in_thread(ctx, message, parsed)
        if reply is not thread_replies.NOT_AN_ANSWER:
            return reply
        addressed = addressed or _is_command(message, parsed)
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
        return await dispatch_text(ctx, message.user, message.channel, origin, message.text)
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


async def _in_thread(ctx: BotContext, message: MessageEvent, parsed: ParsedText) -> Reply | None:
    """Handle a message in a thread; return NOT_AN_ANSWER if it answers nothing."""
    if not _is_command(message, parsed):
        return await thread_replies.handle_reply(ctx, message, parsed)
    if not parsed.addressed and not await thread_replies.is_of_job(ctx, message):
        return None
    if names := await thread_replies.questions_for(ctx, message, parsed):
        return _with_command(
            ctx, message, await thread_replies.handle_reply(ctx, message, parsed), names
        )
    open_questions = (
        await thread_replies.open_question_names(ctx, message)
        if isinstance(parsed.request, JobRequest)
        else []
    )
    if not open_questions:
        return thread_replies.NOT_AN_ANSWER
    return Reply(
        f"A job in this thread is waiting for an answer to {', '.join(open_questions)}: use its"
        " buttons. To start a new job, write outside this thread."
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
    typed = escape_truncated(f"{ctx.settings.command} {message.text.split(None, 1)[0]}", 100)
    note = (
        f"In this thread, a message to me answers {' or '.join(names)}. To run the command, type"
        f" `{typed}` outside of threads."
    )
    if reply is None:
        return Reply(note)
    blocks = [*reply.blocks, section(note)] if reply.blocks else None
    return Reply(f"{reply.text}\n{note}", blocks)


def _is_addressed(message: MessageEvent) -> bool:
    return message.mentioned or message.private


def _is_command(message: MessageEvent, parsed: ParsedText) -> bool:
    """Return whether a message in a thread is a command: in it, or after a mention.

    Answers and decisions without a name are for the thread's question.
    """
    if not parsed.verb or parsed.problem or (parsed.doubtful and not message.mentioned):
        return False
    is_answer = parsed.verb in DECISIONS or (parsed.verb == "answer" and not parsed.doubtful)
    return bool(parsed.ref) or not is_answer
