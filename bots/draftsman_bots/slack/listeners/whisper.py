"""Private words: what only the person who did something reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from slack_sdk.errors import SlackApiError
from slack_sdk.webhook.async_client import AsyncWebhookClient

from draftsman.errors import DatabaseUnreachable, DraftsmanError, LostRace
from draftsman_bots.slack.listeners.people import NotHere
from draftsman_bots.slack.text import escaped

if TYPE_CHECKING:
    from draftsman_bots.slack.blocks import Block
    from draftsman_bots.slack.listeners.desk import Desk


@dataclass(frozen=True, slots=True)
class Place:
    """Where somebody is; `channel` is "" in a view, `respond` the payload's address, if any."""

    user: str
    channel: str = ""
    thread: str = ""
    respond: str = ""


@dataclass(frozen=True, slots=True)
class Said:
    """Words as mrkdwn, escaped already, and their blocks where they are more than that."""

    text: str
    blocks: list[Block] | None = None
    news: bool = True
    """Whether it says what the person sees nowhere else."""


def comes_again(error: DraftsmanError) -> bool:
    """Return whether the same payload may fare better later: Slack is to repeat it."""
    return isinstance(error, DatabaseUnreachable | LostRace)


def refusal(error: DraftsmanError) -> Said:
    """Return what somebody reads of an error."""
    if isinstance(error, NotHere):
        where = ", ".join(f"<#{channel}>" for channel in error.channels)
        return Said(f"Requests do not count in this channel; where they do: {where}")
    return Said(escaped(str(error)))


def whisper(desk: Desk, place: Place, said: Said) -> None:
    """Say it to one person: in the channel, else by the payload's address, else directly."""
    desk.aside.begin(_whisper(desk, place, said))


async def _whisper(desk: Desk, place: Place, said: Said) -> None:
    if place.channel and not place.channel.startswith("D"):
        try:
            await desk.client.chat_postEphemeral(
                channel=place.channel,
                user=place.user,
                thread_ts=place.thread or None,
                **_content(said),
            )
        except SlackApiError:
            if await _respond(place, said):
                return
        else:
            return
    await desk.client.chat_postMessage(
        channel=place.channel if place.channel.startswith("D") else place.user,
        thread_ts=(place.thread or None) if place.channel.startswith("D") else None,
        unfurl_links=False,
        unfurl_media=False,
        **_content(said),
    )


async def _respond(place: Place, said: Said) -> bool:
    """Try the payload's address, which is good for five words in half an hour."""
    if not place.respond:
        return False
    client = AsyncWebhookClient(place.respond, retry_handlers=[])
    response = await client.send(
        text=said.text, blocks=said.blocks, response_type="ephemeral", replace_original=False
    )
    return response.status_code == 200


def _content(said: Said) -> dict[str, Any]:
    return {"text": said.text, "blocks": said.blocks} if said.blocks else {"text": said.text}
