"""Whether a process can work: its database takes writes, and its folders have room."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from time import monotonic
from typing import Any, Final

from draftsman.database import schema
from draftsman.database.database import Database
from draftsman.errors import DraftsmanError
from draftsman.formats.amounts import format_size

LOOK_TIMEOUT: Final = 2.0
"""Seconds in which the database and the file system must respond."""
MAX_AGE: Final = 1.0
"""Seconds for which an answer is kept, however often it is requested."""
MIN_FREE: Final = 100_000_000
"""Bytes that a folder must have free."""
NO_REPLY: Final = "the database does not respond"
READ_ONLY: Final = "the database is read-only: a standby, or default_transaction_read_only is on"


class Readiness:
    """Problems of the database and of the folders of a process, as probes ask for them."""

    KEYS: Final = ("database", "disk")

    def __init__(self, db: Database, folders: Sequence[Path]) -> None:
        self._looks = (
            _Look("database", lambda: _database_problem(db), NO_REPLY),
            _Look("disk", lambda: _disk_problem(folders), "the data folder does not respond"),
        )

    async def problems(self) -> dict[str, str]:
        """Return the problems by key, within `LOOK_TIMEOUT`; they are at most a second old."""
        found = await asyncio.gather(*(look.problem() for look in self._looks))
        return {
            look.key: text
            for look, text in zip(self._looks, found, strict=True)
            if text is not None
        }


class _Look:
    """A look at something that may hang; one at a time."""

    def __init__(
        self, key: str, look: Callable[[], Coroutine[Any, Any, str | None]], hangs: str
    ) -> None:
        self.key = key
        self._look = look
        self._hangs = hangs
        self._task: asyncio.Task[str | None] | None = None
        self._ended_at = 0.0

    async def problem(self) -> str | None:
        task = self._task
        if task is None or (task.done() and monotonic() > self._ended_at + MAX_AGE):
            task = self._task = asyncio.create_task(self._look())
            task.add_done_callback(self._ended)
        done, _ = await asyncio.wait({task}, timeout=LOOK_TIMEOUT)
        return task.result() if done else self._hangs

    def _ended(self, _: object) -> None:
        self._ended_at = monotonic()


async def _database_problem(db: Database) -> str | None:
    try:
        async with db.connection() as conn:
            return None if await schema.is_writable(conn) else READ_ONLY
    except DraftsmanError:
        return NO_REPLY


async def _disk_problem(folders: Sequence[Path]) -> str | None:
    return await asyncio.to_thread(disk_problem, folders)


def disk_problem(folders: Sequence[Path]) -> str | None:
    """Return the problem of the file systems of these folders, without paths."""
    for folder in folders:
        place = next(path for path in (folder, *folder.parents) if path.exists())
        try:
            state = os.statvfs(place)
        except OSError as error:
            return f"the data folder cannot be read: {error.strerror}"
        if state.f_flag & os.ST_RDONLY:
            return "the data folder is on a read-only file system"
        if state.f_bavail * state.f_frsize < MIN_FREE:
            return f"the data folder has less than {format_size(MIN_FREE)} free"
        if state.f_files and not state.f_favail:
            return "the file system of the data folder has no free inode"
    return None
