"""The process that runs the bots of all configured channels."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from draftsman.database import migrate
from draftsman.processes.components import Component, ComponentGroup
from draftsman.processes.hardening import deny_inspection
from draftsman.processes.shutdown import shutdown_signals
from draftsman.runtime import open_runtime
from draftsman.settings import Settings
from draftsman.settings.attention import webhook_pagers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from draftsman.runtime import Runtime

_log = logging.getLogger(__name__)


async def run_bots(settings: Settings, *, only: Sequence[str], parent: int | None = None) -> int:
    """Run the bots of the channels in `only` until a signal arrives; return the exit code.

    The end of the process `parent` counts as a signal. Raises ConfigError, DatabaseUnreachable,
    SchemaOutdated.
    """
    deny_inspection()
    channels = [name for name in only if is_configured(settings, name)]
    async with (
        shutdown_signals(parent) as signals,
        open_runtime(_with_slack_timeout(settings, channels)) as rt,
    ):
        await migrate.warn_if_newer(rt.db.session_url)
        bots = ComponentGroup([BOTS[name](rt) for name in channels])
        with signals.stopping(bots.stop):
            await bots.run()
    _log.info("bots stopped")
    return 0


def _with_slack_timeout(settings: Settings, channels: Sequence[str]) -> Settings:
    """Lower the statement timeout below Slack's deadline if Slack is served."""
    if "slack" not in channels:
        return settings
    from draftsman_bots.slack.transport.dispatcher import with_statement_timeout

    return with_statement_timeout(settings)


def _create_slack_bot(rt: Runtime) -> Component:
    from draftsman_bots.slack import credentials, service

    assert rt.settings.slack is not None  # noqa: S101 - only those that are configured
    return service.Service(rt, rt.settings.slack, credentials.read(rt.settings.slack))


def _create_trello_bot(rt: Runtime) -> Component:
    from draftsman_bots.trello import credentials, service

    assert rt.settings.trello is not None  # noqa: S101 - only those that are configured
    return service.Service(rt, rt.settings.trello, credentials.read(rt.settings.trello))


def _create_forge_bot(rt: Runtime) -> Component:
    from draftsman_bots.forges import service

    return service.ForgeService(rt)


def _create_pager_receiver(rt: Runtime) -> Component:
    from draftsman_bots.pagers import service

    return service.PagerService(rt)


def is_configured(settings: Settings, name: str) -> bool:
    """Return whether the configuration has a bot."""
    if name == "forges":
        return bool(settings.read_forges)
    if name == "pagers":
        return bool(webhook_pagers(settings.pagers))
    return getattr(settings, name) is not None


BOTS: Final[Mapping[str, Callable[[Runtime], Component]]] = {
    "slack": _create_slack_bot,
    "trello": _create_trello_bot,
    "forges": _create_forge_bot,
    "pagers": _create_pager_receiver,
}
"""Functions that create the bot of a configuration table; they raise ConfigError."""
