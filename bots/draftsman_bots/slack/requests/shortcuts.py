"""Listeners of shortcuts, which open the modal of a new job."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from draftsman.errors import NotPermitted
from draftsman_bots.slack import ids
from draftsman_bots.slack.ephemeral import ReplyTarget, error_reply, send_ephemeral
from draftsman_bots.slack.home import modal_views
from draftsman_bots.slack.home.modals import open_modal
from draftsman_bots.slack.payloads import payloads
from draftsman_bots.slack.people.access import check_modal_access
from draftsman_bots.slack.requests.job_requests import job_target

if TYPE_CHECKING:
    from slack_bolt.async_app import AsyncApp

    from draftsman_bots.slack.context import BotContext


def register(app: AsyncApp, ctx: BotContext) -> None:
    """Register both shortcuts."""

    async def shortcut(ack: Any, body: dict[str, Any]) -> None:
        on_shortcut(ctx, body)
        await ack()

    app.shortcut(re.compile(""))(shortcut)


def on_shortcut(ctx: BotContext, body: dict[str, Any]) -> None:
    """Open the modal, with the text of the message, if any."""
    shortcut = payloads.parse_shortcut(body)
    if shortcut is None or shortcut.callback not in (ids.NEW_JOB, ids.FROM_MESSAGE):
        return
    reply_target = ReplyTarget(
        shortcut.user.id, shortcut.channel, shortcut.thread, shortcut.response_url
    )
    try:
        check_modal_access(ctx, shortcut.user)
    except NotPermitted as error:
        send_ephemeral(ctx, reply_target, error_reply(error))
        return
    target = job_target(shortcut.channel, shortcut.thread or shortcut.ts, shortcut.user.id)
    view = modal_views.new_job(ctx.rt.settings.agent_names, target, shortcut.text)
    open_modal(ctx, reply_target, shortcut.trigger_id, view)
