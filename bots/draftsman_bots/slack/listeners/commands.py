"""The slash command: committed, then acknowledged with words for its writer alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from draftsman.errors import DraftsmanError
from draftsman_bots.slack import inbound
from draftsman_bots.slack.listeners.requests import Asked, place
from draftsman_bots.slack.listeners.take import take
from draftsman_bots.slack.listeners.whisper import Said, comes_again, refusal

if TYPE_CHECKING:
    from slack_bolt.async_app import AsyncApp

    from draftsman_bots.slack.listeners.desk import Desk


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
    try:
        return await take(desk, found.who, found.channel, asked, inbound.readable(found.text))
    except DraftsmanError as error:
        if comes_again(error):
            raise
        return refusal(error)
