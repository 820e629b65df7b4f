"""The declaration of forges as a channel: issues and pull requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from draftsman.channels.plugin import ChannelPlugin

if TYPE_CHECKING:
    from draftsman.settings import Settings


def _is_configured(settings: Settings) -> bool:
    return bool(settings.read_forges)


FORGE = ChannelPlugin(
    name="forge",
    label="forges",
    table="forges",
    is_configured=_is_configured,
    bot="draftsman_bots.forges.service:ForgeService",
    bot_label="receiver of forge events",
    how_to_configure="events to [forges.NAME] (docs/follow-ups.md)",
    requires=("starlette", "uvicorn", "prometheus_client"),
)
