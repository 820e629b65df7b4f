"""Retries of database calls by a run during an outage, a lock or a conflict of the database."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from draftsman.errors import DatabaseUnreachable, DraftsmanError
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
    whose reply was lost. A run that is `stopping` retries once, on another connection. An error
    that a later call may not meet (a lock, a conflict, a read-only server) is retried as well.
    Raises the last error when the retries are used up.
    """
    clock = asyncio.get_running_loop().time
    deadline, attempts = clock() + worker.lease, 0
    while True:
        try:
            return await call()
        except DraftsmanError as error:
            attempts += 1
            if not error.is_temporary or clock() > deadline or (attempts > 1 and stopping()):
                raise
            if attempts == 1:
                problem = "unreachable" if isinstance(error, DatabaseUnreachable) else "busy"
                _log.info("%s: database %s, retrying: %s", name, problem, error)
            await asyncio.sleep(worker.poll)
