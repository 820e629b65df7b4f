"""The process of the bots: what listens in chat, and what sends there."""

from __future__ import annotations

import logging
import os

from draftsman import migrate
from draftsman.process import told
from draftsman.runtime import open_runtime
from draftsman.settings import Settings
from draftsman_bots.slack import tokens
from draftsman_bots.slack.bot import patience
from draftsman_bots.slack.service import Service

_log = logging.getLogger(__name__)


async def run_bots(settings: Settings, *, parent: int | None = None) -> int:
    """Serve Slack until a signal, or until the process `parent` is gone; return the exit code.

    Raises ConfigError, DatabaseUnreachable, SchemaOutdated.
    """
    assert settings.slack is not None  # noqa: S101 - the command refuses without
    known = tokens.read(settings.slack)
    async with open_runtime(patience(settings)) as rt:
        if newer := await migrate.ready(rt.db.url):
            _log.warning("the database has %s, which this version does not know; going on", newer)
        service = Service(rt, settings.slack, known)

        def shut_down(why: str) -> None:
            if service.stop:
                _log.warning("%s again: exiting now", why)
                os._exit(1)
            _log.info("%s: stopping", why)
            service.end()

        async with told(shut_down, parent):
            await service.run()
    _log.info("bots stopped")
    return 0
