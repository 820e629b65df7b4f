"""Detection of colleagues in other workspaces of an Enterprise Grid organization.

If a payload does not name the workspace's organization, the channel's sharing is looked up. Results
are cached until the process ends.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from slack_sdk.errors import SlackApiError

from draftsman.domain.job import Source
from draftsman.domain.people.actor import Actor
from draftsman_bots.slack.identity import NETWORK
from draftsman_bots.slack.parsers.users import UserOrigin

if TYPE_CHECKING:
    from draftsman_bots.slack.context import BotContext
    from draftsman_bots.slack.parsers.payloads import SlackUser

TIMEOUT: Final = 1.0
"""Seconds for the lookup, which Slack's own request waits for."""


async def recognize(desk: BotContext, who: SlackUser) -> None:
    """Record a user or their whole workspace as colleagues if that is verified.

    Raises DraftsmanError if the database cannot be read.
    """
    known, account = desk.identity.colleagues, f"{who.id}@{who.team}"
    own, org, _ = desk.own
    origin = who.origin(own, org)
    if origin is UserOrigin.HOME and who.team not in ("", own, org):
        known.add(who.team)
    if origin is not UserOrigin.UNSURE or known & {who.team, account}:
        return
    if who.channel.startswith("D"):
        if await _is_configured(desk, who):
            known.add(account)
    elif who.channel and await _is_internal(desk, who.channel):
        known.add(who.team)


async def _is_configured(desk: BotContext, who: SlackUser) -> bool:
    """Return whether a user in the bot's own conversation is configured by the bare id.

    Slack resolved that id in the home organization when the conversation was opened.
    """
    people = desk.rt.people
    stranger = await people.actor(Actor(Source.SLACK, f"{who.id}@{who.team}", who.id))
    colleague = await people.actor(Actor(Source.SLACK, who.id, who.id))
    return stranger.person is None and colleague.person is not None and who.inside is not False


async def _is_internal(desk: BotContext, channel: str) -> bool:
    """Return whether no other organization shares the channel; False if unknown."""
    try:
        async with asyncio.timeout(TIMEOUT):
            said: Any = (await desk.client.conversations_info(channel=channel)).data
    except (SlackApiError, *NETWORK):
        return False
    found = said.get("channel") or {}
    return found.get("is_ext_shared") is False and found.get("is_pending_ext_shared") is not True
