"""Attachments of jobs: their references, downloads and content."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from draftsman.channels import ChannelName, registry
from draftsman.database.database import Connection, Database
from draftsman.errors import UsageError
from draftsman.jobs.requests.attachments import (
    MAX_BYTES,
    PATIENCE,
    JobAttachment,
    PendingFile,
    rows_of,
)
from draftsman.jobs.requests.store import attachments as store
from draftsman.people.actor import Actor

if TYPE_CHECKING:
    from draftsman.jobs.requests.invocation import FileRef

CLAIM = 60.0
"""Seconds for the downloads of a claim, after which another process repeats them."""


class Attachments:
    """Files that people sent with requests and messages."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def of_job(self, job: int) -> list[JobAttachment]:
        """Return the attachments of a job, in order."""
        async with self._db.connection() as conn:
            return await store.of_job(conn, job, PATIENCE)

    async def content(self, item: JobAttachment) -> bytes | None:
        """Return the bytes of a stored attachment, None for another."""
        async with self._db.connection() as conn:
            return await store.content(conn, item.job, item.id)

    async def claim(self, channel: ChannelName, most: int = 5) -> list[PendingFile]:
        """Claim pending files for the bot of a channel, which ends each by `store` or `refuse`."""
        return await self._db.run_transaction(lambda conn: store.claim(conn, channel, most, CLAIM))

    async def store(
        self, file: PendingFile, data: bytes, more: Sequence[FileRef] = ()
    ) -> str | None:
        """Store a downloaded file; return its status: `stored`, or `refused` for its size.

        `more` are files that were found in it, such as those of a thread: the job gets them too.
        None: the claim was over, and another process has ended the file or downloads it again.
        """
        if len(data) > MAX_BYTES:
            return await self.refuse(file, f"a file has at most {MAX_BYTES:,} bytes")
        return await self._db.run_transaction(
            lambda conn: store.end(conn, file, data, None, rows_of(more))
        )

    async def refuse(self, file: PendingFile, reason: str) -> str | None:
        """Record that a file cannot be downloaded, and why; None as in `store`."""
        return await self._db.run_transaction(lambda conn: store.end(conn, file, None, reason))


async def add(
    conn: Connection, job: int, actor: Actor, files: Sequence[FileRef], message: int | None = None
) -> int:
    """Add files to an unfinished job in the transaction of the caller; return how many are new."""
    check_channel(actor)
    rows = rows_of(files)
    return await store.add(conn, job, actor.name, rows, message) if rows else 0


def check_channel(actor: Actor) -> None:
    """Raise UsageError for a channel whose files nothing downloads."""
    channel = registry.find(actor.channel)
    if channel is None or not channel.takes_files:
        labels = [item.label for item in registry.channels() if item.takes_files]
        raise UsageError(f"attachments are files of a request in {' or '.join(labels)}")
