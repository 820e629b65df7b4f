"""Retries of database calls by a run while the database is unreachable."""

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
    """Return the result of `call`, retried while the lease may still be valid.

    `name` is the job's, for the log. `call` has to be idempotent: it is repeated after a commit
    whose reply was lost. A run that is `stopping` retries once, on another connection. Raises
    DatabaseUnreachable when the retries are used up.
    """
    clock = asyncio.get_running_loop().time
    deadline, attempts = clock() + worker.lease, 0
    while True:
        try:
            return await call()
        except DatabaseUnreachable as error:
            attempts += 1
            if clock() > deadline or (attempts > 1 and stopping()):
                raise
            if attempts == 1:
                _log.info("%s: database unreachable, retrying: %s", name, error)
            await asyncio.sleep(worker.poll)
