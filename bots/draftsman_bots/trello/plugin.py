"""The declaration of the channel Trello."""

from __future__ import annotations

from typing import TYPE_CHECKING

from draftsman.channels.plugin import ChannelPlugin

if TYPE_CHECKING:
    from draftsman.settings import Settings


def _is_configured(settings: Settings) -> bool:
    return settings.trello is not None


TRELLO = ChannelPlugin(
    name="trello",
    label="Trello",
    is_configured=_is_configured,
    bot="draftsman_bots.trello.service:create",
    how_to_configure="[trello] (docs/trello.md)",
    requires=("trello", "starlette", "uvicorn", "prometheus_client"),
)
