"""Ratification of proposed permission rules by operators, from the message that proposes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from draftsman.errors import NotFound
from draftsman_bots.json_fields import objects
from draftsman_bots.slack import ids
from draftsman_bots.slack.deliveries.blocks import context
from draftsman_bots.slack.deliveries.mrkdwn import escape_truncated
from draftsman_bots.slack.ephemeral import Reply

if TYPE_CHECKING:
    from draftsman.people.actor import Actor
    from draftsman_bots.slack.context import BotContext
    from draftsman_bots.slack.payloads.payloads import BlockAction

DECLINED: Final = "declined in Slack"
CONTROLS: Final = "actions"


async def decide(ctx: BotContext, actor: Actor, action: BlockAction, kind: str) -> Reply | None:
    """Ratify or decline a rule; raises DraftsmanError.

    The message then shows the decision instead of its buttons.
    """
    rule = ids.parse_rule(action.value)
    if rule is None:
        raise NotFound("rule not found")
    if kind == ids.RATIFY_RULE:
        changed = await ctx.rt.rules.ratify(rule, actor)
        note = f"Ratified by {changed.ratified_by}"
    else:
        changed = await ctx.rt.rules.revoke(rule, actor, DECLINED)
        note = f"Declined by {changed.ended_by}"
    text = f"{note}: rule {rule}, {changed.text}"
    if action.message is None or not action.channel or not action.ts:
        return Reply(f"{escape_truncated(text, 300)}.")
    blocks = [block for block in objects(action.message, "blocks") if block.get("type") != CONTROLS]
    update = ctx.client.chat_update(
        channel=action.channel,
        ts=action.ts,
        text=escape_truncated(text, 300),
        blocks=[*blocks, context(escape_truncated(f"{note}.", 300))],
    )
    ctx.background.spawn(update)
    return None
