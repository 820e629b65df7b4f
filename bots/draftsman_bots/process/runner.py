"""The process that runs the bots of all configured channels."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from draftsman import plugins
from draftsman.channels import registry
from draftsman.database import migrate
from draftsman.errors import CommandHint, DraftsmanError, SchemaOutdated
from draftsman.formats.shown_zone import SHOWN_ZONE
from draftsman.processes.components import Component, ComponentGroup
from draftsman.processes.hardening import deny_inspection
from draftsman.processes.shutdown import shutdown_signals
from draftsman.runtime import open_runtime
from draftsman_bots.process.plugin_bot import PluginBot

if TYPE_CHECKING:
    from draftsman.channels.plugin import ChannelPlugin
    from draftsman.runtime import Runtime
    from draftsman.settings import Settings

_log = logging.getLogger(__name__)


async def run_bots(
    settings: Settings, channels: Sequence[ChannelPlugin], *, parent: int | None = None
) -> int:
    """Run the bots of configured channels until a signal arrives; return the exit code.

    The end of the process `parent` counts as a signal. Raises ConfigError, DatabaseUnreachable,
    SchemaOutdated.
    """
    deny_inspection()
    for _, problem in registry.problems():
        _log.error("%s", problem)
    async with (
        shutdown_signals(parent) as signals,
        open_runtime(with_statement_timeout(settings, channels)) as rt,
    ):
        outdated = await migrate.warn_of_schema(rt.db.session_url)
        usable = [channel for channel in channels if channel.name not in outdated]
        if not usable:
            raise SchemaOutdated(
                "no channel is migrated to the version of its package",
                hint=CommandHint("migrate", lead="run"),
            )
        bots = ComponentGroup([*create_bots(rt, usable)])
        SHOWN_ZONE.set(rt.policy.zone)  # of replies
        with signals.stopping(bots.stop):
            await bots.run()
    _log.info("bots stopped")
    return 0


def with_statement_timeout(settings: Settings, channels: Sequence[ChannelPlugin]) -> Settings:
    """Return settings whose statements time out before the callers of a channel do.

    A statement that the server canceled had no effect; if the client only stopped waiting, it may
    have.
    """
    limits = [item.statement_timeout for item in channels if item.statement_timeout is not None]
    timeout = min([settings.database.statement_timeout, *limits])
    database = settings.database.model_copy(update={"statement_timeout": timeout})
    return settings.model_copy(update={"database": database})


def create_bots(rt: Runtime, channels: Sequence[ChannelPlugin]) -> Iterator[Component]:
    """Yield the bot of each channel; raises ConfigError for a wrong configuration.

    A package whose bot cannot be created for another reason, or fails, harms no other.
    """
    for channel in channels:
        if channel.bot is None:
            continue
        plugin = plugins.find(plugins.CHANNELS, channel.name)
        try:
            create = partial(plugins.resolve(channel.bot), rt)
            yield create() if plugin.package == plugins.OWN else PluginBot(plugin, create)
        except DraftsmanError:
            raise
        except Exception:
            _log.exception("the bot of %s cannot be started", plugin)
