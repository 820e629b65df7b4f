"""A worker process: the configuration, a crew, and the signals that end it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import AsyncIterator, Callable
from typing import Final

from draftsman import migrate
from draftsman.handlers import registry
from draftsman.hardening import deny_inspection
from draftsman.loops.watchdog import Watchdog
from draftsman.runtime import open_runtime
from draftsman.settings import Settings

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
PARENT_POLL: Final = 0.5
"""Seconds between two looks whether the supervisor is still there."""
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

    The first SIGTERM, SIGINT or SIGHUP drains, a second one exits at once. That the process
    `parent` is no longer the one that this one belongs to counts as the first signal. A handler
    that blocks the event loop for a whole lease ends the process with code 70. Raises
    ConfigError, DatabaseUnreachable, SchemaOutdated.
    """
    deny_inspection()
    handlers = registry.load(settings.handlers)
    async with open_runtime(settings) as runtime:
        if newer := await migrate.ready(runtime.db.url):
            _log.warning("the database has %s, which this version does not know; going on", newer)
        crew = runtime.crew(handlers, queues=queues, slots=slots, leader=leader)
        async with told(crew.shut_down, parent):
            with Watchdog(settings.worker.lease, crew.worker.names):
                await crew.run()
    if crew.worker.running:  # they swallow their cancellation, and would be waited for for ever
        _log.error("%s handlers do not end; exiting without them", len(crew.worker.running))
        os._exit(1)
    return 0


@contextlib.asynccontextmanager
async def told(handle: Callable[[str], None], parent: int | None = None) -> AsyncIterator[None]:
    """Call `handle` with why this process is to end: a signal, or the end of `parent`."""
    watch = asyncio.create_task(_watch(parent, handle)) if parent else None
    loop = asyncio.get_running_loop()
    for number in SIGNALS:
        loop.add_signal_handler(number, handle, signal.Signals(number).name)
    try:
        yield
    finally:
        for number in SIGNALS:
            loop.remove_signal_handler(number)
        if watch is not None:
            watch.cancel()


async def _watch(parent: int, handle: Callable[[str], None]) -> None:
    while os.getppid() == parent:  # noqa: ASYNC110 - no event tells of a parent's death
        await asyncio.sleep(PARENT_POLL)
    handle("the supervisor is gone")
