"""The declaration of pagers as a channel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from draftsman.channels.plugin import ChannelPlugin

if TYPE_CHECKING:
    from draftsman.settings import Settings


def _is_configured(settings: Settings) -> bool:
    from draftsman.settings.attention import webhook_pagers

    return bool(webhook_pagers(settings.pagers))


PAGER = ChannelPlugin(
    name="pager",
    label="pagers",
    table="pagers",
    is_configured=_is_configured,
    bot="draftsman_bots.pagers.service:PagerService",
    bot_label="receiver of pager webhooks",
    how_to_configure="listen to [pagers.NAME] (docs/attention-ladder.md)",
    requires=("starlette", "uvicorn", "prometheus_client"),
)
