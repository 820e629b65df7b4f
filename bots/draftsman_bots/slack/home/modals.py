"""Opening of modals, before any lookup, because a trigger id expires after 3 s."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from slack_sdk.errors import SlackApiError

from draftsman_bots.slack.ephemeral import Reply, ReplyTarget, send_ephemeral
from draftsman_bots.slack.identity import NETWORK, error_code

if TYPE_CHECKING:
    from draftsman_bots.slack.context import BotContext
    from draftsman_bots.slack.home.modal_views import View

TIMED_OUT: Final = Reply("Slack timed out. Please try again.")
REFUSED: Final = "Slack did not open the form: {}."


def open_modal(ctx: BotContext, target: ReplyTarget, trigger_id: str, view: View) -> None:
    """Open a modal in the background; if the trigger id expired, tell the user."""
    ctx.background.spawn(_show(ctx, target, trigger_id, view))


async def _show(ctx: BotContext, target: ReplyTarget, trigger_id: str, view: View) -> None:
    try:
        await ctx.client.views_open(trigger_id=trigger_id, view=view)
    except SlackApiError as error:
        if (code := error_code(error)) == "exchanged_trigger_id":
            return  # an earlier delivery of the same request opened it
        timed_out = code in ("expired_trigger_id", "invalid_trigger_id")
        send_ephemeral(ctx, target, TIMED_OUT if timed_out else Reply(REFUSED.format(code)))
    except NETWORK:
        send_ephemeral(ctx, target, TIMED_OUT)
