"""The bot of another package, which harms no other when it fails."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from draftsman.processes.lifecycle import StopSignal

if TYPE_CHECKING:
    from draftsman.plugins import Plugin
    from draftsman.processes.components import Component

RESTART: Final = 60.0
"""Seconds before a bot that failed starts again."""
_log = logging.getLogger(__name__)


class PluginBot:
    """A bot that is created again after a failure, which is named with its package."""

    def __init__(
        self, plugin: Plugin, create: Callable[[], Component], restart: float = RESTART
    ) -> None:
        """Create the bot; raises what `create` raises."""
        self._plugin = plugin
        self._create = create
        self._restart = restart
        self._bot: Component | None = create()
        self.stop = StopSignal(self._stop)

    async def run(self) -> None:
        """Run the bot until stopped, or until it ends."""
        while not self.stop:
            try:
                self._bot = self._bot or self._create()
                await self._bot.run()
            except Exception:
                _log.exception("the bot of %s failed; it starts again", self._plugin)
            else:
                return
            self._bot = None
            await self.stop.wait(self._restart)

    def _stop(self) -> None:
        if self._bot is not None:
            self._bot.stop.set()
