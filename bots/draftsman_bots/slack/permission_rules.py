"""The decision about a proposed permission rule, in the message that proposes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from draftsman_bots.json_fields import objects
from draftsman_bots.slack.deliveries.blocks import context

if TYPE_CHECKING:
    from draftsman_bots.slack.context import BotContext
    from draftsman_bots.slack.payloads.payloads import BlockAction

CONTROLS: Final = "actions"


def show_in_message(ctx: BotContext, click: BlockAction, text: str) -> bool:
    """Show the decision instead of the controls; False for a click without a message."""
    if click.message is None or not click.channel or not click.ts:
        return False
    blocks = [block for block in objects(click.message, "blocks") if block.get("type") != CONTROLS]
    update = ctx.client.chat_update(
        channel=click.channel, ts=click.ts, text=text, blocks=[*blocks, context(text)]
    )
    ctx.background.spawn(update)
    return True
