"""Accounts of people in channels, as targets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from draftsman.channels import ChannelName, registry


def reaches_people(channel: ChannelName) -> bool:
    """Return whether the account of a person is a target of the channel."""
    plugin = registry.find(channel)
    return plugin is not None and plugin.facts.person_target is not None


def person_target(channel: ChannelName, account: str) -> str | None:
    """Return the target that reaches the person of an account; None if no target does."""
    plugin = registry.find(channel)
    if plugin is None or plugin.facts.person_target is None:
        return None
    match = re.search(plugin.facts.person_target, account)
    return match[0] if match else None


def direct_target(accounts: Mapping[ChannelName, str]) -> tuple[ChannelName, str] | None:
    """Return the channel and the target that reach a person, in a chat if there is one."""

    def targets() -> Iterator[tuple[bool, ChannelName, str]]:
        for channel, account in accounts.items():
            plugin = registry.find(channel)
            if plugin is not None and (target := person_target(channel, account)):
                yield not plugin.facts.is_chat, channel, target

    first = min(targets(), default=None)
    return None if first is None else first[1:]
