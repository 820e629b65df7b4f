"""Opening of modals, before any lookup, because a trigger id expires after 3 s."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slack_sdk.errors import SlackApiError

from draftsman_bots.slack.identity import NETWORK
from draftsman_bots.slack.usecases.ephemeral import Reply, ReplyTarget, send_ephemeral

if TYPE_CHECKING:
    from draftsman_bots.slack.context import BotContext
    from draftsman_bots.slack.outbound.modal_views import View


def open_modal(ctx: BotContext, target: ReplyTarget, trigger_id: str, view: View) -> None:
    """Open a modal in the background; if the trigger id expired, tell the user."""
    ctx.background.spawn(_show(ctx, target, trigger_id, view))


async def _show(ctx: BotContext, target: ReplyTarget, trigger_id: str, view: View) -> None:
    try:
        await ctx.client.views_open(trigger_id=trigger_id, view=view)
    except (SlackApiError, *NETWORK):
        send_ephemeral(ctx, target, Reply("Slack timed out. Please try again."))
