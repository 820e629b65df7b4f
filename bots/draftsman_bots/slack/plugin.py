"""The declaration of the channel Slack."""

from __future__ import annotations

from typing import TYPE_CHECKING

from draftsman.channels.plugin import ChannelPlugin

if TYPE_CHECKING:
    from draftsman.settings import Settings


def _is_configured(settings: Settings) -> bool:
    return settings.slack is not None


SLACK = ChannelPlugin(
    name="slack",
    label="Slack",
    is_configured=_is_configured,
    bot="draftsman_bots.slack.service:create",
    how_to_configure="[slack] (docs/slack.md)",
    statement_timeout=2.2,  # Slack waits three seconds for an acknowledgment
    requires=("slack_bolt", "aiohttp", "starlette", "uvicorn", "prometheus_client"),
)
