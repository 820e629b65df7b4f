"""How long a run waits for the database: while its lease may hold, and nobody stops it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from draftsman.errors import DatabaseUnreachable
from draftsman.settings import WorkerSettings

T = TypeVar("T")
_log = logging.getLogger(__name__)


async def wait_for_database(
    name: str,
    call: Callable[[], Awaitable[T]],
    worker: WorkerSettings,
    stopping: Callable[[], bool],
) -> T:
    """Await `call`, again while the database is away and the lease may hold; return its result.

    `name` is the job's. `call` comes again after it was done where the reply of its commit was
    lost. A run that is `stopping` tries twice: one connection may be gone, and time is short.
    Raises DatabaseUnreachable in the end.
    """
    clock = asyncio.get_running_loop().time
    deadline, tries = clock() + worker.lease, 0
    while True:
        try:
            return await call()
        except DatabaseUnreachable as error:
            tries += 1
            if clock() > deadline or (tries > 1 and stopping()):
                raise
            if tries == 1:
                _log.info("%s waits for the database: %s", name, error)
            await asyncio.sleep(worker.poll)
