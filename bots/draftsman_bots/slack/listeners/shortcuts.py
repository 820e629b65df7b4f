"""Shortcuts: they open the window of a new job."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from draftsman.errors import NotPermitted
from draftsman_bots.slack import forms, ids, inbound
from draftsman_bots.slack.listeners.people import check_opening
from draftsman_bots.slack.listeners.requests import place
from draftsman_bots.slack.listeners.whisper import Place, refusal, whisper
from draftsman_bots.slack.listeners.windows import show

if TYPE_CHECKING:
    from slack_bolt.async_app import AsyncApp

    from draftsman_bots.slack.listeners.desk import Desk


def register(app: AsyncApp, desk: Desk) -> None:
    """Put both shortcuts on the app."""

    async def shortcut(ack: Any, body: dict[str, Any]) -> None:
        run(desk, body)
        await ack()

    app.shortcut(re.compile(""))(shortcut)


def run(desk: Desk, body: dict[str, Any]) -> None:
    """Open the window, with the text of the message if there is one."""
    found = inbound.shortcut(body)
    if found is None or found.callback not in (ids.NEW_JOB, ids.FROM_MESSAGE):
        return
    where = Place(found.who.id, found.channel, found.thread, found.respond)
    try:
        check_opening(desk, found.who)
    except NotPermitted as error:
        whisper(desk, where, refusal(error, found.who.id))
        return
    target = place(found.channel, found.thread or found.ts, found.who.id)
    view = forms.new_job(desk.rt.settings.agent_names, target, found.text)
    show(desk, where, found.trigger, view)
