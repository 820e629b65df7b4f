"""Private words: what only the person who did something reads."""

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
    """Where somebody is; `channel` is "" in a view, `respond` the payload's address, if any."""

    user: str
    channel: str = ""
    thread: str = ""
    response_url: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """Words as mrkdwn, escaped already, and their blocks where they are more than that."""

    text: str
    blocks: list[Block] | None = None
    news: bool = True
    """Whether it says what the person sees nowhere else."""


def is_retryable(error: DraftsmanError) -> bool:
    """Return whether the same payload may fare better later: Slack is to repeat it."""
    return isinstance(error, DatabaseUnreachable | LostRace)


def error_reply(error: DraftsmanError, user: str) -> Reply:
    """Return what a person, by the id, reads of an error."""
    if isinstance(error, ChannelNotAllowed):
        where = ", ".join(f"<#{channel}>" for channel in error.channels)
        return Reply(f"I don't take requests here. Try {where}")
    return Reply(mention_reader(escape_truncated(error_text(error)), user))


def modal_error(error: DraftsmanError, user: str) -> str:
    """Return the same for a window, which shows no mentions: and so no channel."""
    if isinstance(error, ChannelNotAllowed):
        return "I don't take requests in the channel where this was opened. Use another channel."
    return address_reader(error_text(error), user)


def send_ephemeral(desk: BotContext, place: ReplyTarget, said: Reply) -> None:
    """Say it to one person: in the channel, else by the payload's address, else directly."""
    desk.background.spawn(_whisper(desk, place, said))


def notify_actor(desk: BotContext, body: dict[str, Any], text: str) -> None:
    """Say to whoever pressed or used a shortcut what its answer cannot show, once for each try."""
    found = payloads.parse_block_action(body) or payloads.parse_shortcut(body)
    if found is None:
        return
    place = ReplyTarget(found.who.id, found.channel, found.thread, found.response_url)
    key = found.key if isinstance(found, payloads.BlockAction) else found.trigger_id
    if desk.background.first((key, text)):
        send_ephemeral(desk, place, Reply(escape_truncated(text)))


async def _whisper(desk: BotContext, place: ReplyTarget, said: Reply) -> None:
    """Try each way until one may have worked; a word that found none is a line of the log."""
    direct = not place.channel or place.channel.startswith("D")
    ways = [_directly] if direct else [_among_others, _by_address, _directly]
    why = ""
    for way in ways:
        why = await _try(way(desk, place, said))
        if not why:
            return
    _log.warning("an ephemeral message was not sent: %s", why)


async def _try(call: Awaitable[str]) -> str:
    """Return why it was not said; "" if it was."""
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
    """Say it by the payload's address, which is good for five words in half an hour."""
    if not place.response_url:
        return "no response_url"
    client = AsyncWebhookClient(place.response_url, retry_handlers=[], timeout=desk.client.timeout)
    response = await client.send(
        text=said.text, blocks=said.blocks, response_type="ephemeral", replace_original=False
    )
    return "" if response.status_code == 200 else f"HTTP {response.status_code}"


def _content(said: Reply) -> dict[str, Any]:
    return {"text": said.text, "blocks": said.blocks} if said.blocks else {"text": said.text}
