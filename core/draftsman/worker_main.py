"""A worker process: its configuration, its parts, and the signals that end it."""

from __future__ import annotations

import logging
import os

from draftsman import migrate
from draftsman.handlers import registry
from draftsman.hardening import deny_inspection
from draftsman.loops.watchdog import Watchdog
from draftsman.runtime import open_runtime
from draftsman.settings import Settings
from draftsman.shutdown import shutdown_signals

_log = logging.getLogger(__name__)


async def run_worker(
    settings: Settings,
    queues: tuple[str, ...] | None = None,
    slots: int | None = None,
    *,
    leader: bool = True,
    parent: int | None = None,
) -> int:
    """Work until a signal; return the exit code.

    The first SIGTERM, SIGINT or SIGHUP drains, or ends the start; a second one exits at once. That
    the process `parent` is no longer the one that this one belongs to counts as the first signal. A
    handler that blocks the event loop for a whole lease ends the process with code 70. Raises
    ConfigError, DatabaseUnreachable, SchemaOutdated.
    """
    deny_inspection()
    handlers = registry.load(settings.handlers)
    async with shutdown_signals(parent) as signals:
        async with open_runtime(settings) as runtime:
            if newer := await migrate.check_compatible(runtime.db.url):
                _log.warning(
                    "the database has %s, which this version does not know; going on", newer
                )
            crew = runtime.worker_process(handlers, queues=queues, slots=slots, leader=leader)
            watchdog = Watchdog(settings.worker.lease, crew.worker.names)
            with signals.handled_by(crew.shut_down), watchdog:
                await crew.run()
        if crew.worker.running:  # they swallow their cancellation, and would be waited for for ever
            _log.error("%s handlers do not end; exiting without them", len(crew.worker.running))
            os._exit(1)
    return 0
