"""Listener of messages and mentions: commands, replies in threads, and edits.

A mention is delivered twice, as `app_mention` and as `message`; both have the same key, and the
second has no effect.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from draftsman.errors import DraftsmanError
from draftsman_bots.slack.mrkdwn import escape_truncated
from draftsman_bots.slack.outbound.blocks import section
from draftsman_bots.slack.parsers import command_parser, payloads
from draftsman_bots.slack.parsers.command_parser import InvalidText, JobRequest, TextCommand
from draftsman_bots.slack.parsers.payloads import MessageChange, MessageEvent
from draftsman_bots.slack.usecases import job_requests, thread_replies
from draftsman_bots.slack.usecases.ephemeral import (
    Reply,
    ReplyTarget,
    error_reply,
    is_retryable,
    send_ephemeral,
)
from draftsman_bots.slack.usecases.job_requests import RequestOrigin, job_target
from draftsman_bots.slack.usecases.text_dispatch import dispatch_text

if TYPE_CHECKING:
    from slack_bolt.async_app import AsyncApp

    from draftsman_bots.slack.context import BotContext

_log = logging.getLogger(__name__)


def register(app: AsyncApp, desk: BotContext) -> None:
    """Register both events."""

    async def message(ack: Any, body: dict[str, Any], context: Any) -> None:
        await on_message(desk, body, context.bot_user_id or "")
        await ack()

    app.event("message")(message)
    app.event("app_mention")(message)


async def on_message(desk: BotContext, body: dict[str, Any], bot: str) -> None:
    """Handle a message; raises errors after which Slack is to send it again."""
    found = payloads.parse_message(body, bot)
    if found is None:
        _log.debug("ignored a message that was not written by a person")
        return
    try:
        said = await _route(desk, found)
    except DraftsmanError as error:
        if is_retryable(error):
            raise
        said = error_reply(error, found.who.id)
    _tell(desk, found, said)


async def on_missed_reply(desk: BotContext, body: dict[str, Any], bot: str, *, tells: bool) -> None:
    """Handle a reply from the backfill as an answer; commands are too old to execute.

    `tells`: its author is told if the answer is not accepted. Raises errors that a retry may fix.
    """
    found = payloads.parse_message(body, bot)
    if found is None or not found.thread:
        return
    read = command_parser.parse(found.text)
    try:
        if _is_command(found, read) and not await thread_replies.questions_for(desk, found, read):
            return
        said = await thread_replies.handle_reply(desk, found)
    except DraftsmanError as error:
        if is_retryable(error):
            raise
        said = error_reply(error, found.who.id)
    if tells and said is not thread_replies.NOT_AN_ANSWER:
        _tell(desk, found, said)


def _tell(desk: BotContext, message: MessageEvent, said: Reply | None) -> None:
    if said is not None and desk.background.first((message.key, message.text)):
        send_ephemeral(desk, ReplyTarget(message.who.id, message.channel, message.thread), said)


async def _route(desk: BotContext, message: MessageEvent) -> Reply | None:
    """Return the reply to a message, if there is one."""
    if message.change is not MessageChange.POSTED and await thread_replies.record_edit(
        desk, message
    ):
        return None
    if message.change is MessageChange.DELETED:
        return None
    addressed = message.mentioned or message.private
    read = command_parser.parse(message.text)
    made = (
        message.change is MessageChange.EDITED
        and addressed
        and await job_requests.find_job(desk, message)
    )
    if made:
        return await job_requests.edit_notice(desk, message, read, made)
    if message.thread:
        said = await _in_thread(desk, message, read)
        if said is not thread_replies.NOT_AN_ANSWER:
            return said
    if not addressed:
        return await thread_replies.thread_hint(desk, message)
    beside = message.private and isinstance(read, InvalidText)
    if beside and (said := await thread_replies.thread_hint(desk, message)) is not None:
        return said
    if message.change is MessageChange.EDITED and not isinstance(read, JobRequest):
        return None
    asked = RequestOrigin(
        message.key, job_target(message.channel, message.thread or message.ts, message.who.id)
    )
    said = await dispatch_text(desk, message.who, message.channel, asked, message.text)
    # A job says itself, in the thread, that it is there.
    return said if said is None or said.news else None


async def _in_thread(
    desk: BotContext, message: MessageEvent, read: JobRequest | TextCommand | InvalidText
) -> Reply | None:
    """Handle a message in a thread; return NOT_AN_ANSWER if it answers nothing."""
    if not _is_command(message, read):
        return await thread_replies.handle_reply(desk, message)
    if names := await thread_replies.questions_for(desk, message, read):
        return _with_command(desk, message, await thread_replies.handle_reply(desk, message), names)
    waiting = await thread_replies.waiting(desk, message) if isinstance(read, JobRequest) else []
    if not waiting:
        return thread_replies.NOT_AN_ANSWER
    return Reply(
        f"A job in this thread is waiting for an answer to {', '.join(waiting)}: use its buttons."
        " To start a new job, write outside this thread."
    )


def _with_command(
    desk: BotContext, message: MessageEvent, said: Reply | None, names: list[str]
) -> Reply:
    """Add to the reply to an answer how to run the text as a command instead."""
    typed = escape_truncated(f"{desk.settings.command} {message.text.split(None, 1)[0]}", 100)
    note = (
        f"In this thread, a message to me answers {' or '.join(names)}. To run the command, type"
        f" `{typed}` outside of threads."
    )
    if said is None:
        return Reply(note)
    blocks = [*said.blocks, section(note)] if said.blocks else None
    return Reply(f"{said.text}\n{note}", blocks)


def _is_command(message: MessageEvent, read: JobRequest | TextCommand | InvalidText) -> bool:
    """Return whether a message in a thread is a command: a mention followed by a verb.

    `approve` and `deny` without a reference decide the thread's question.
    """
    if not message.mentioned or isinstance(read, InvalidText):
        return False
    return not (isinstance(read, TextCommand) and read.verb in ("approve", "deny") and not read.ref)
