"""The channels of a worker: log, webhook and pager."""

from __future__ import annotations

from collections.abc import Sequence

from draftsman.deliveries.channel import Channel
from draftsman.deliveries.channels.log_channel import LogChannel
from draftsman.deliveries.channels.pager_channel import PagerChannel
from draftsman.deliveries.channels.webhook_channel import WebhookChannel
from draftsman.settings import Settings


def worker_channels(settings: Settings) -> list[Channel]:
    """Return the channels of the configuration."""
    notifications = settings.notifications
    log_file = notifications.log_file or settings.data_dir / "notifications.jsonl"
    return [
        LogChannel(log_file),
        WebhookChannel(settings.webhooks, settings.http, notifications.timeout),
        PagerChannel(settings.pagers, settings.http, notifications.timeout),
    ]


def target_names(channels: Sequence[Channel]) -> list[str]:
    """Return the targets that these channels can send to: `log`, `webhook:team`."""
    names = []
    for channel in channels:
        served = channel.served()
        if served is None:
            names.append(str(channel.name))
        else:
            names += [f"{channel.name}:{target}" for target in served]
    return names
