"""Windows: opened at once, before anything is looked up, because a trigger is good for 3 s."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slack_sdk.errors import SlackApiError

from draftsman_bots.slack.identity import NETWORK
from draftsman_bots.slack.listeners.whisper import Place, Said, whisper

if TYPE_CHECKING:
    from draftsman_bots.slack.forms import View
    from draftsman_bots.slack.listeners.desk import Desk


def show(desk: Desk, place: Place, trigger: str, view: View) -> None:
    """Open a window beside; where it was too late, the person is asked to press again."""
    desk.aside.begin(_show(desk, place, trigger, view))


async def _show(desk: Desk, place: Place, trigger: str, view: View) -> None:
    try:
        await desk.client.views_open(trigger_id=trigger, view=view)
    except (SlackApiError, *NETWORK):
        whisper(desk, place, Said("That took too long for Slack: press again."))
