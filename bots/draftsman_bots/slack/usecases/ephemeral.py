"""Ephemeral replies, which only their reader sees."""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from slack_sdk.errors import SlackApiError
from slack_sdk.webhook.async_client import AsyncWebhookClient

from draftsman.errors import DatabaseUnreachable, DraftsmanError, LostRace
from draftsman_bots.slack.identity import NETWORK, error_code
from draftsman_bots.slack.mrkdwn import address_reader, error_text, escape_truncated, mention_reader
from draftsman_bots.slack.parsers import payloads
from draftsman_bots.slack.usecases.access import ChannelNotAllowed

if TYPE_CHECKING:
    from draftsman_bots.slack.context import BotContext
    from draftsman_bots.slack.outbound.blocks import Block

_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ReplyTarget:
    """The user, and where to reply; `channel` is "" in a view."""

    user: str
    channel: str = ""
    thread: str = ""
    response_url: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """Escaped mrkdwn, and blocks if there are any."""

    text: str
    blocks: list[Block] | None = None
    news: bool = True
    """Whether the user sees this information nowhere else."""


def is_retryable(error: DraftsmanError) -> bool:
    """Return whether the same payload may succeed when Slack sends it again."""
    return isinstance(error, DatabaseUnreachable | LostRace)


def error_reply(error: DraftsmanError, user: str) -> Reply:
    """Return the reply for an error; `user` is the reader's id."""
    if isinstance(error, ChannelNotAllowed):
        where = ", ".join(f"<#{channel}>" for channel in error.channels)
        return Reply(f"I don't take requests here. Try {where}")
    return Reply(mention_reader(escape_truncated(error_text(error)), user))


def modal_error(error: DraftsmanError, user: str) -> str:
    """Return the error text for a modal, which shows neither mentions nor channels."""
    if isinstance(error, ChannelNotAllowed):
        return "I don't take requests in the channel where this was opened. Use another channel."
    return address_reader(error_text(error), user)


def send_ephemeral(desk: BotContext, place: ReplyTarget, said: Reply) -> None:
    """Send it to one user: in the channel, else to the response_url, else directly."""
    desk.background.spawn(_whisper(desk, place, said))


def notify_actor(desk: BotContext, body: dict[str, Any], text: str) -> None:
    """Send the author of an action or shortcut a message, once for each trigger."""
    found = payloads.parse_block_action(body) or payloads.parse_shortcut(body)
    if found is None:
        return
    place = ReplyTarget(found.who.id, found.channel, found.thread, found.response_url)
    key = found.key if isinstance(found, payloads.BlockAction) else found.trigger_id
    if desk.background.first((key, text)):
        send_ephemeral(desk, place, Reply(escape_truncated(text)))


async def _whisper(desk: BotContext, place: ReplyTarget, said: Reply) -> None:
    """Send it through the first way that works; if none does, log a warning."""
    direct = not place.channel or place.channel.startswith("D")
    ways = [_directly] if direct else [_among_others, _by_address, _directly]
    why = ""
    for way in ways:
        why = await _try(way(desk, place, said))
        if not why:
            return
    _log.warning("an ephemeral message was not sent: %s", why)


async def _try(call: Awaitable[str]) -> str:
    """Return why it was not sent; "" if it was."""
    try:
        return await call
    except SlackApiError as error:
        return error_code(error)
    except NETWORK as error:
        return type(error).__name__


async def _among_others(desk: BotContext, place: ReplyTarget, said: Reply) -> str:
    await desk.client.chat_postEphemeral(
        channel=place.channel,
        user=place.user,
        thread_ts=place.thread or None,
        **_content(said),
    )
    return ""


async def _directly(desk: BotContext, place: ReplyTarget, said: Reply) -> str:
    here = place.channel.startswith("D")
    await desk.client.chat_postMessage(
        channel=place.channel if here else place.user,
        thread_ts=(place.thread or None) if here else None,
        unfurl_links=False,
        unfurl_media=False,
        **_content(said),
    )
    return ""


async def _by_address(desk: BotContext, place: ReplyTarget, said: Reply) -> str:
    """Send it to the response_url, which accepts five messages within 30 minutes."""
    if not place.response_url:
        return "no response_url"
    client = AsyncWebhookClient(place.response_url, retry_handlers=[], timeout=desk.client.timeout)
    response = await client.send(
        text=said.text, blocks=said.blocks, response_type="ephemeral", replace_original=False
    )
    return "" if response.status_code == 200 else f"HTTP {response.status_code}"


def _content(said: Reply) -> dict[str, Any]:
    return {"text": said.text, "blocks": said.blocks} if said.blocks else {"text": said.text}
