"""Listeners of shortcuts, which open the modal of a new job."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from draftsman.errors import NotPermitted
from draftsman_bots.slack import ids
from draftsman_bots.slack.outbound import modal_views
from draftsman_bots.slack.parsers import payloads
from draftsman_bots.slack.usecases.access import check_modal_access
from draftsman_bots.slack.usecases.ephemeral import ReplyTarget, error_reply, send_ephemeral
from draftsman_bots.slack.usecases.job_requests import job_target
from draftsman_bots.slack.usecases.modals import open_modal

if TYPE_CHECKING:
    from slack_bolt.async_app import AsyncApp

    from draftsman_bots.slack.context import BotContext


def register(app: AsyncApp, desk: BotContext) -> None:
    """Register both shortcuts."""

    async def shortcut(ack: Any, body: dict[str, Any]) -> None:
        on_shortcut(desk, body)
        await ack()

    app.shortcut(re.compile(""))(shortcut)


def on_shortcut(desk: BotContext, body: dict[str, Any]) -> None:
    """Open the modal, with the text of the message if there is one."""
    found = payloads.parse_shortcut(body)
    if found is None or found.callback not in (ids.NEW_JOB, ids.FROM_MESSAGE):
        return
    where = ReplyTarget(found.who.id, found.channel, found.thread, found.response_url)
    try:
        check_modal_access(desk, found.who)
    except NotPermitted as error:
        send_ephemeral(desk, where, error_reply(error, found.who.id))
        return
    target = job_target(found.channel, found.thread or found.ts, found.who.id)
    view = modal_views.new_job(desk.rt.settings.agent_names, target, found.text)
    open_modal(desk, where, found.trigger_id, view)
