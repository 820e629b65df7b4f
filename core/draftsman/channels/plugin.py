"""The declaration of a channel, which its package has as an entry point of `draftsman.channels`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelPlugin:
    """What draftsman knows of a channel.

    Its module must import little, as each command that meets the channel imports it. What needs
    more is a name, `package.module:attribute`, which is imported when it is used.
    """

    name: str
    """The name of the entry point, in targets, and of the accounts of people."""
    label: str
    """What people call it: `Slack`."""
    table: str = ""
    """Its table in the configuration; by default `name`."""
    is_configured: Callable[[Any], bool] = lambda _settings: False
    """Whether the `Settings` have a bot of the channel."""
    bot: str | None = None
    """Function of the `Runtime` that returns the `Component` of `draftsman bots`, and raises
    ConfigError. None: the channel has no bot."""
    bot_label: str = ""
    """What people call the bot; by default `<label> bot`."""
    how_to_configure: str = ""
    """What to add to the configuration for the bot; by default `[table]`."""
    statement_timeout: float | None = None
    """Maximum seconds of a statement of the process with the bot, whose callers wait no longer."""
    requires: tuple[str, ...] = ()
    """Top-level modules of the package's extra of the same name as the table."""

    def __post_init__(self) -> None:
        for field, default in (
            ("table", self.name),
            ("bot_label", f"{self.label} bot"),
            ("how_to_configure", f"[{self.table or self.name}]"),
        ):
            if not getattr(self, field):
                object.__setattr__(self, field, default)
