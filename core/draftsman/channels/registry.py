"""The channels of the packages that are installed here."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import cache

from draftsman import plugins
from draftsman.channels.plugin import ChannelPlugin
from draftsman.errors import ConfigError


@cache
def channel(name: str) -> ChannelPlugin:
    """Return the channel of a name; raises ConfigError if it cannot be used."""
    plugin = plugins.find(plugins.CHANNELS, name)
    loaded = plugins.load(plugin, ChannelPlugin)
    if loaded.name != name:
        raise ConfigError(f"{plugin} cannot be used: it is named {loaded.name!r}")
    return loaded


def find(name: str) -> ChannelPlugin | None:
    """Return a channel that can be used here, else None: its rows are history."""
    with contextlib.suppress(ConfigError):
        return channel(name)
    return None


def channels() -> list[ChannelPlugin]:
    """Return the channels that can be used, by name."""
    return [item for name in plugins.names(plugins.CHANNELS) if (item := find(name)) is not None]


def taking_answers() -> frozenset[str]:
    """Return the names of the channels where people answer."""
    return frozenset(item.name for item in channels() if item.facts.takes_answers)


def problems() -> Iterator[tuple[plugins.Plugin, str]]:
    """Yield the plugins that cannot be used, and why."""
    for plugin in plugins.installed(plugins.CHANNELS):
        try:
            plugins.check(plugin)
            channel(plugin.name)
        except ConfigError as error:
            yield plugin, str(error)
