"""Listener of the slash command: committed, then acknowledged with an ephemeral reply."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from slack_sdk.errors import SlackApiError

from draftsman_bots.conversation.parser import ParsedText, parse_slack
from draftsman_bots.conversation.requests import JobRequest
from draftsman_bots.slack.commands.text_dispatch import dispatch_text
from draftsman_bots.slack.ephemeral import Reply, reply_of, send_ephemeral
from draftsman_bots.slack.identity import NETWORK, error_code
from draftsman_bots.slack.payloads.payloads import PAYLOAD, readable_text
from draftsman_bots.slack.requests.job_requests import RequestOrigin, job_target

if TYPE_CHECKING:
    from slack_bolt.async_app import AsyncApp

    from draftsman_bots.slack.context import BotContext
    from draftsman_bots.slack.payloads.payloads import SlashCommand


NOT_IN_CHANNEL: Final = Reply(
    "I am not in this channel, so updates on the job go to you in a direct message. To get them"
    " here next time, type `/invite @draftsman`"
)


def register(app: AsyncApp, ctx: BotContext) -> None:
    """Register the command."""

    async def command(ack: Any, context: dict[str, Any]) -> None:
        reply = await on_command(ctx, context[PAYLOAD])
        if reply is None:
            await ack()
        else:
            await ack(text=reply.text, blocks=reply.blocks, response_type="ephemeral")

    app.command(ctx.settings.command)(command)


async def on_command(ctx: BotContext, command: SlashCommand) -> Reply | None:
    """Execute a command; raises errors that Slack or the user can retry."""
    return await reply_of(_execute(ctx, command))


async def _execute(ctx: BotContext, command: SlashCommand) -> Reply | None:
    target = job_target(command.channel, "", command.user.id)
    origin = RequestOrigin(command.key, target, command)
    parsed = parse_slack(readable_text(command.text))
    reply = await dispatch_text(ctx, command.user, command.channel, origin, parsed)
    if _submits_job(parsed, reply):
        ctx.background.spawn(_notify_if_absent(ctx, command))
    return reply


def _submits_job(parsed: ParsedText, reply: Reply | None) -> bool:
    """Return whether updates on a job follow: a form, which has no reply, submits it later."""
    if parsed.command is not None and parsed.command.name == "template":
        return reply is None or not reply.blocks
    return isinstance(parsed.request, JobRequest) and reply is not None


async def _notify_if_absent(ctx: BotContext, command: SlashCommand) -> None:
    """Tell the user if the bot cannot post in the channel of a new job."""
    if command.channel.startswith("D"):
        return
    try:
        response: Any = (await ctx.client.conversations_info(channel=command.channel)).data
        absent = (response.get("channel") or {}).get("is_member") is False
    except SlackApiError as error:
        absent = error_code(error) == "channel_not_found"  # a private channel
    except NETWORK:
        return
    if absent and ctx.background.first(("away", command.channel, command.user.id, command.key)):
        send_ephemeral(ctx, command.reply_target, NOT_IN_CHANNEL)
