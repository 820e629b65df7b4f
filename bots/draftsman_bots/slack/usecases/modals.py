"""Opening of modals, before any lookup, because a trigger id expires after 3 s."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slack_sdk.errors import SlackApiError

from draftsman_bots.slack.identity import NETWORK
from draftsman_bots.slack.usecases.ephemeral import Reply, ReplyTarget, send_ephemeral

if TYPE_CHECKING:
    from draftsman_bots.slack.context import BotContext
    from draftsman_bots.slack.outbound.modal_views import View


def open_modal(desk: BotContext, place: ReplyTarget, trigger: str, view: View) -> None:
    """Open a modal in the background; if the trigger id expired, tell the user."""
    desk.background.spawn(_show(desk, place, trigger, view))


async def _show(desk: BotContext, place: ReplyTarget, trigger: str, view: View) -> None:
    try:
        await desk.client.views_open(trigger_id=trigger, view=view)
    except (SlackApiError, *NETWORK):
        send_ephemeral(desk, place, Reply("Slack timed out. Please try again."))
