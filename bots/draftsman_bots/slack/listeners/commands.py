"""The slash command: committed, then acknowledged with words for its writer alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from slack_sdk.errors import SlackApiError

from draftsman.errors import DraftsmanError
from draftsman_bots.slack import grammar, inbound
from draftsman_bots.slack.grammar import Request
from draftsman_bots.slack.identity import NETWORK, error_code
from draftsman_bots.slack.listeners.requests import Asked, place
from draftsman_bots.slack.listeners.take import take
from draftsman_bots.slack.listeners.whisper import Place, Said, comes_again, refusal, whisper

if TYPE_CHECKING:
    from slack_bolt.async_app import AsyncApp

    from draftsman_bots.slack.listeners.desk import Desk


AWAY: Final = Said(
    "I am not in this channel, so the job tells how it goes to you alone. To have it told here the"
    " next time, type: `/invite @draftsman`"
)


def register(app: AsyncApp, desk: Desk) -> None:
    """Put the command on the app."""

    async def command(ack: Any, body: dict[str, Any]) -> None:
        said = await answer(desk, body)
        if said is None:
            await ack()
        else:
            await ack(text=said.text, blocks=said.blocks, response_type="ephemeral")

    app.command(desk.settings.command)(command)


async def answer(desk: Desk, body: dict[str, Any]) -> Said | None:
    """Do what a command says; raises what lets Slack, or the person, repeat it."""
    found = inbound.command(body)
    if found is None:
        return None
    asked = Asked(found.key, place(found.channel, "", found.who.id))
    words = inbound.readable(found.text)
    try:
        said = await take(desk, found.who, found.channel, asked, words)
        if said is not None and isinstance(grammar.parse(words), Request):
            desk.aside.begin(_invite(desk, found))
        return said
    except DraftsmanError as error:
        if comes_again(error):
            raise
        return refusal(error, found.who.id)


async def _invite(desk: Desk, command: inbound.Command) -> None:
    """Say where a job was asked for that the bot cannot speak there."""
    if command.channel.startswith("D"):
        return
    try:
        said: Any = (await desk.client.conversations_info(channel=command.channel)).data
        away = (said.get("channel") or {}).get("is_member") is False
    except SlackApiError as error:
        away = error_code(error) == "channel_not_found"  # a private one
    except NETWORK:
        return
    if away and desk.aside.first(("away", command.channel, command.who.id, command.key)):
        whisper(desk, Place(command.who.id, command.channel, respond=command.respond), AWAY)
