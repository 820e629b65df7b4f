"""Listeners of Slack's payloads, a module for each kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from slack_bolt.async_app import AsyncApp

    from draftsman_bots.slack.context import BotContext
    from draftsman_bots.slack.transport.dispatcher import EventListener


def register(app: AsyncApp, ctx: BotContext) -> None:
    """Register the listeners of commands and interactions."""
    from draftsman_bots.slack.commands import listener as commands
    from draftsman_bots.slack.home import submissions as views
    from draftsman_bots.slack.listeners import actions
    from draftsman_bots.slack.requests import job_requests as shortcuts

    for module in (commands, actions, views, shortcuts):
        module.register(app, ctx)


def events(ctx: BotContext) -> dict[str, EventListener]:
    """Return the listeners of events, by type."""
    from draftsman_bots.slack.home import home
    from draftsman_bots.slack.listeners import messages
    from draftsman_bots.slack.questions import reactions

    return messages.events(ctx) | home.events(ctx) | reactions.events(ctx)
