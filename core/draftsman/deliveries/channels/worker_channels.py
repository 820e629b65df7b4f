"""The channels of a worker: log, webhook, and those of packages that need no bot."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

from draftsman import plugins
from draftsman.channels import registry
from draftsman.deliveries.channel import Channel
from draftsman.deliveries.channels.log_channel import LogChannel
from draftsman.deliveries.channels.webhook_channel import WebhookChannel
from draftsman.errors import ConfigError
from draftsman.settings import Settings

_log = logging.getLogger(__name__)


def worker_channels(settings: Settings) -> list[Channel]:
    """Return the channels of the configuration."""
    notifications = settings.notifications
    log_file = notifications.log_file or settings.data_dir / "notifications.jsonl"
    return [
        LogChannel(log_file),
        WebhookChannel(settings.webhooks, settings.http, notifications.timeout),
        *_of_packages(settings),
    ]


def _of_packages(settings: Settings) -> Iterator[Channel]:
    """Yield the channels of packages; one that cannot be used harms no other."""
    for declared in registry.channels():
        if declared.worker_channel is None:
            continue
        plugin = plugins.find(plugins.CHANNELS, declared.name)
        try:
            channel: Channel = plugins.load_part(plugin, declared.worker_channel)(settings)
        except ConfigError as error:
            _log.error("nothing is sent to %s: %s", declared.name, error)
        else:
            yield channel


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
