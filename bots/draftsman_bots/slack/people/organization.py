"""Detection of colleagues in other workspaces of an Enterprise Grid organization.

If a payload does not name the workspace's organization, the channel's sharing is looked up. Results
are cached until the process ends.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from slack_sdk.errors import SlackApiError

from draftsman.jobs.job import Source
from draftsman.people.actor import Actor
from draftsman_bots.slack.identity import NETWORK
from draftsman_bots.slack.payloads.users import UserOrigin

if TYPE_CHECKING:
    from draftsman_bots.slack.context import BotContext
    from draftsman_bots.slack.payloads.payloads import SlackUser

TIMEOUT: Final = 1.0
"""Seconds for the lookup, which Slack's own request waits for."""


async def recognize(ctx: BotContext, user: SlackUser) -> None:
    """Record a user or their whole workspace as colleagues if that is verified.

    Raises DraftsmanError if the database cannot be read.
    """
    colleagues, account = ctx.identity.colleagues, f"{user.id}@{user.team}"
    home, org, _ = ctx.company
    origin = user.origin(home, org)
    if origin is UserOrigin.HOME and user.team not in ("", home, org):
        colleagues.add(user.team)
    if origin is not UserOrigin.UNSURE or colleagues & {user.team, account}:
        return
    if user.channel.startswith("D"):
        if await _is_configured(ctx, user):
            colleagues.add(account)
    elif user.channel and await is_internal(ctx, user.channel):
        colleagues.add(user.team)


async def _is_configured(ctx: BotContext, user: SlackUser) -> bool:
    """Return whether a user in the bot's own conversation is configured by the bare id.

    Slack resolved that id in the home organization when the conversation was opened.
    """
    people = ctx.rt.people
    stranger = await people.actor(Actor(Source.SLACK, f"{user.id}@{user.team}", user.id))
    colleague = await people.actor(Actor(Source.SLACK, user.id, user.id))
    return (
        stranger.person is None
        and colleague.person is not None
        and user.is_internal_channel is not False
    )


async def is_internal(ctx: BotContext, channel: str) -> bool:
    """Return whether no other organization shares the channel; False if unknown."""
    try:
        async with asyncio.timeout(TIMEOUT):
            response: Any = (await ctx.client.conversations_info(channel=channel)).data
    except (SlackApiError, *NETWORK):
        return False
    info = response.get("channel") or {}
    return info.get("is_ext_shared") is False and info.get("is_pending_ext_shared") is not True
