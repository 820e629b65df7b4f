"""Live checks of Slack, in a channel that a person names."""

from __future__ import annotations

from typing import Final

from draftsman.deliveries.channels.live_check import LiveChecks
from draftsman_bots.slack.live_checks import conversation, streams, threads
from draftsman_bots.slack.live_checks.place import connect

LIVE_CHECKS: Final = LiveChecks(
    connect=connect,
    checks=(*threads.CHECKS, *conversation.CHECKS, *streams.CHECKS),
    packages=("slack_sdk",),
)
