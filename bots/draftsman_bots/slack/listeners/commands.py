"""Listener of the slash command: committed, then acknowledged with an ephemeral reply."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from slack_sdk.errors import SlackApiError

from draftsman.errors import DraftsmanError
from draftsman_bots.slack.identity import NETWORK, error_code
from draftsman_bots.slack.parsers import command_parser, payloads
from draftsman_bots.slack.parsers.command_parser import JobRequest
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


NOT_IN_CHANNEL: Final = Reply(
    "I am not in this channel, so updates on the job go to you in a direct message. To get them"
    " here next time, type `/invite @draftsman`"
)


def register(app: AsyncApp, desk: BotContext) -> None:
    """Register the command."""

    async def command(ack: Any, body: dict[str, Any]) -> None:
        said = await on_command(desk, body)
        if said is None:
            await ack()
        else:
            await ack(text=said.text, blocks=said.blocks, response_type="ephemeral")

    app.command(desk.settings.command)(command)


async def on_command(desk: BotContext, body: dict[str, Any]) -> Reply | None:
    """Execute a command; raises errors that Slack or the user can retry."""
    found = payloads.parse_slash_command(body)
    if found is None:
        return None
    asked = RequestOrigin(found.key, job_target(found.channel, "", found.who.id))
    words = payloads.readable_text(found.text)
    try:
        said = await dispatch_text(desk, found.who, found.channel, asked, words)
        if said is not None and isinstance(command_parser.parse(words), JobRequest):
            desk.background.spawn(_invite(desk, found))
        return said
    except DraftsmanError as error:
        if is_retryable(error):
            raise
        return error_reply(error, found.who.id)


async def _invite(desk: BotContext, command: payloads.SlashCommand) -> None:
    """Tell the user if the bot cannot post in the channel of a new job."""
    if command.channel.startswith("D"):
        return
    try:
        said: Any = (await desk.client.conversations_info(channel=command.channel)).data
        away = (said.get("channel") or {}).get("is_member") is False
    except SlackApiError as error:
        away = error_code(error) == "channel_not_found"  # a private one
    except NETWORK:
        return
    if away and desk.background.first(("away", command.channel, command.who.id, command.key)):
        send_ephemeral(
            desk,
            ReplyTarget(command.who.id, command.channel, response_url=command.response_url),
            NOT_IN_CHANNEL,
        )
