"""Listeners of Slack's payloads, a module for each kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from slack_bolt.async_app import AsyncApp

    from draftsman_bots.slack.context import BotContext


def register(app: AsyncApp, ctx: BotContext) -> None:
    """Register all listeners."""
    from draftsman_bots.slack.listeners import actions, commands, home, messages, shortcuts, views

    for module in (commands, messages, actions, views, shortcuts, home):
        module.register(app, ctx)
