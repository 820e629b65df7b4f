"""Ephemeral replies, which only their reader sees."""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from slack_sdk.errors import SlackApiError
from slack_sdk.webhook.async_client import AsyncWebhookClient

from draftsman.errors import DatabaseUnreachable, DraftsmanError, LostRace
from draftsman_bots.slack.deliveries.mrkdwn import (
    error_spans,
    escape_truncated,
    mention_spans,
    plain_spans,
)
from draftsman_bots.slack.identity import NETWORK, error_code
from draftsman_bots.slack.people.access import ChannelNotAllowed

if TYPE_CHECKING:
    from draftsman_bots.conversation.replies import TextReply
    from draftsman_bots.slack.context import BotContext
    from draftsman_bots.slack.deliveries.blocks import Block
    from draftsman_bots.slack.payloads.payloads import Interaction, ReplyTarget

_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Reply:
    """Escaped mrkdwn, and blocks if there are any."""

    text: str
    blocks: list[Block] | None = None


def spoken(reply: TextReply | None, *, shown: bool = False) -> Reply | None:
    """Return an ephemeral reply; with `shown`, also of what the question's message shows."""
    if reply is None:
        return None
    text = reply.whole if shown else reply.text
    return Reply(mention_spans(text)) if text else None


def is_retryable(error: DraftsmanError) -> bool:
    """Return whether the same payload may succeed when Slack sends it again."""
    return isinstance(error, DatabaseUnreachable | LostRace)


def error_reply(error: DraftsmanError) -> Reply:
    """Return the reply for an error."""
    if isinstance(error, ChannelNotAllowed):
        channels = ", ".join(f"<#{channel}>" for channel in error.channels)
        return Reply(f"I don't take requests here. Try {channels}")
    return Reply(mention_spans(error_spans(error)))


async def reply_of(work: Awaitable[Reply | None]) -> Reply | None:
    """Return the reply of a listener, or that for its error; raises what Slack is to send again."""
    try:
        return await work
    except DraftsmanError as error:
        if is_retryable(error):
            raise
        return error_reply(error)


def send_once(ctx: BotContext, key: str, target: ReplyTarget, reply: Reply | None) -> None:
    """Send a reply, once for the key of its payload."""
    if reply is not None and ctx.background.first((key, reply.text)):
        send_ephemeral(ctx, target, reply)


def modal_error(error: DraftsmanError, user: str) -> str:
    """Return the error text for a modal, which shows neither mentions nor channels."""
    if isinstance(error, ChannelNotAllowed):
        return "I don't take requests in the channel where this was opened. Use another channel."
    return plain_spans(error_spans(error), user)


def send_ephemeral(ctx: BotContext, target: ReplyTarget, reply: Reply) -> None:
    """Send it to a single user: in the channel, else to the response_url, else directly."""
    ctx.background.spawn(_send(ctx, target, reply))


def notify_actor(ctx: BotContext, payload: Interaction, text: str) -> None:
    """Send the author of an action or shortcut a message, once for each trigger."""
    send_once(ctx, payload.key, payload.reply_target, Reply(escape_truncated(text)))


async def _send(ctx: BotContext, target: ReplyTarget, reply: Reply) -> None:
    """Send it through the first way that works; if none does, log a warning."""
    is_direct = not target.channel or target.channel.startswith("D")
    senders = (
        [_send_directly] if is_direct else [_send_in_channel, _send_to_response_url, _send_directly]
    )
    error = ""
    for send in senders:
        error = await _error_of(send(ctx, target, reply))
        if not error:
            return
    _log.warning("an ephemeral message was not sent: %s", error)


async def _error_of(call: Awaitable[str]) -> str:
    """Return why it was not sent; "" if it was."""
    try:
        return await call
    except SlackApiError as error:
        return error_code(error)
    except NETWORK as error:
        return type(error).__name__


async def _send_in_channel(ctx: BotContext, target: ReplyTarget, reply: Reply) -> str:
    await ctx.client.chat_postEphemeral(
        channel=target.channel,
        user=target.user,
        thread_ts=target.thread or None,
        **_content(reply),
    )
    return ""


async def _send_directly(ctx: BotContext, target: ReplyTarget, reply: Reply) -> str:
    is_direct = target.channel.startswith("D")
    await ctx.client.chat_postMessage(
        channel=target.channel if is_direct else target.user,
        thread_ts=(target.thread or None) if is_direct else None,
        unfurl_links=False,
        unfurl_media=False,
        **_content(reply),
    )
    return ""


async def _send_to_response_url(ctx: BotContext, target: ReplyTarget, reply: Reply) -> str:
    """Send it to the response_url, which accepts five messages within 30 minutes."""
    if not target.response_url:
        return "no response_url"
    client = AsyncWebhookClient(target.response_url, retry_handlers=[], timeout=ctx.client.timeout)
    response = await client.send(
        text=reply.text, blocks=reply.blocks, response_type="ephemeral", replace_original=False
    )
    return "" if response.status_code == 200 else f"HTTP {response.status_code}"


def _content(reply: Reply) -> dict[str, Any]:
    return {"text": reply.text, "blocks": reply.blocks} if reply.blocks else {"text": reply.text}
