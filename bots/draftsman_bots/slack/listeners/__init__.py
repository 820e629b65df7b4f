"""Listeners of Slack's payloads, a module for each kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from draftsman_bots.slack.commands import listener as commands
from draftsman_bots.slack.home import home, submissions
from draftsman_bots.slack.jobs import session_stops
from draftsman_bots.slack.listeners import actions, messages
from draftsman_bots.slack.questions import reactions
from draftsman_bots.slack.requests import job_requests

if TYPE_CHECKING:
    from slack_bolt.async_app import AsyncApp

    from draftsman_bots.slack.context import BotContext
    from draftsman_bots.slack.transport.dispatcher import EventListener


def register(app: AsyncApp, ctx: BotContext) -> None:
    """Register the listeners of commands and interactions."""
    for module in (commands, actions, submissions, job_requests):
        module.register(app, ctx)


def events(ctx: BotContext) -> dict[str, EventListener]:
    """Return the listeners of events, by type."""
    found: dict[str, EventListener] = {}
    for module in (messages, home, reactions, session_stops):
        found |= module.events(ctx)
    return found
