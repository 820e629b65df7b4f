"""Targets of messages, as people write them: `log`, `webhook:NAME`, `mail:ADDRESS`."""

from __future__ import annotations

from typing import Final

from draftsman import plugins
from draftsman.channels import LOG, WEBHOOK, ChannelName, registry
from draftsman.errors import ConfigError, UsageError

CORE_FORMS: Final = (LOG, f"{WEBHOOK}:NAME")
"""The targets of channels that are no plugins."""
MAX_LENGTH: Final = 500
MAX_SHOWN: Final = 60
"""Maximum characters of a wrong target in an error message."""


def parse_target(text: str, *, critical: bool = False) -> tuple[ChannelName, str, str | None]:
    """Return the channel, the target and the thread.

    Only messages about critical questions have targets that are `only_critical`. Raises UsageError.
    """
    text = text.strip()
    name, _, address = text.partition(":")
    if text == LOG:
        return LOG, LOG, None
    shown = repr(text[:MAX_SHOWN])
    if len(text) <= MAX_LENGTH and address:
        if name == WEBHOOK and "/" not in address:
            return WEBHOOK, address, None
        if name in plugins.names(plugins.CHANNELS):
            try:
                syntax = registry.channel(name).target
                if syntax is not None and (critical or not syntax.only_critical):
                    return (name, *syntax.parse(address))
            except (ConfigError, ValueError) as error:
                raise UsageError(f"{shown}: {error}") from None
    raise UsageError(f"{shown} is not a target; use {target_forms()}")


def is_only_critical(channel: ChannelName) -> bool:
    """Return whether a channel is for critical questions."""
    plugin = registry.find(channel)
    return plugin is not None and plugin.target is not None and plugin.target.only_critical


def target_forms() -> str:
    """Return the notations of a target, for error messages."""
    syntaxes = [item.target for item in registry.channels() if item.target is not None]
    *forms, last = [*CORE_FORMS, *(item.form for item in syntaxes if not item.only_critical)]
    return f"{', '.join(forms)} or {last}"
