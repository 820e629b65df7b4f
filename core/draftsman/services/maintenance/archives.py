"""Pruning: a month of the trail becomes a file, and a file a month of the trail again.

A month leaves in one transaction: its partition is held against writers, archived, the archive is
read back from the disk, and only then the partition is dropped. Whoever is killed at any point
leaves the partition, or the verified archive, or both.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Final

from draftsman import host
from draftsman.domain.people.actor import Actor
from draftsman.domain.people.policy import Policy, Verb
from draftsman.errors import CommandHint, Conflict, LostRace, Refused
from draftsman.services.maintenance.archive_file import (
    BLOCK,
    ArchiveContent,
    ArchiveWriter,
    check_archive,
    read_blocks,
)
from draftsman.settings import RetentionSettings
from draftsman.store import archives as store
from draftsman.store.postgres.database import Connection, Database
from draftsman.store.sweeps import LeaderTerm

LOCK_TIMEOUT: Final = "1s"
"""How long anybody may wait behind us for the trail; then we try again another time."""
STATEMENT_TIMEOUT: Final = "1h"
"""How long one statement over a month may take."""
MAX_HOLDERS_SHOWN: Final = 5
"""Jobs named that keep a month."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RetentionMonth:
    """A month older than the retention, and what becomes of it: pruned, held, or kept for ever.

    `held_by` names the first of `holders` jobs. `partition` is False where the month has none of
    its own: its events are in the default partition, which is never dropped.
    """

    month: date
    events: int
    holders: int
    held_by: tuple[str, ...]
    partition: bool = True

    @property
    def how(self) -> str:
        """Return it in words."""
        if not self.partition:
            return "never: its events are in the default partition"
        if not self.holders:
            return "can be pruned"
        more = (
            f" and {self.holders - len(self.held_by)} more"
            if self.holders > MAX_HOLDERS_SHOWN
            else ""
        )
        return f"held by {', '.join(self.held_by)}{more}"


class Archives:
    """Prunes, restores, and knows what was pruned."""

    def __init__(
        self, db: Database, policy: Policy, retention: RetentionSettings, folder: Path, limit: int
    ) -> None:
        self._db = db
        self._policy = policy
        self._retention = retention
        self._folder = folder
        self._limit = limit

    async def prune(self, term: LeaderTerm) -> int:
        """Delete old logs, then archive and drop the oldest month that nothing holds.

        Return how many rows went. Raises Refused (the archive cannot be written), LostRace.
        """
        return await self._prune_logs(term) + await self._prune_events(term)

    async def plan(self) -> list[RetentionMonth]:
        """Return the months that are older than the retention, oldest first; change nothing."""
        months = self._retention.events
        if months is None:
            return []
        async with self._db.connection() as conn:
            due = await store.due(conn, LeaderTerm(), months)
            found = [await self._look(conn, month, months) for month in due]
            strays = await store.default_partition_months(conn, months)
        found += [RetentionMonth(month, events, 0, (), partition=False) for month, events in strays]
        return sorted(found, key=lambda one: one.month)

    async def all(self) -> Sequence[store.Archive]:
        """Return every month that left, oldest first."""
        async with self._db.connection() as conn:
            return await store.archives(conn)

    async def of_job(self, number: int) -> Sequence[store.JobArchive]:
        """Return the months that left with events of a job."""
        async with self._db.connection() as conn:
            return await store.of_job(conn, number)

    async def after(self, cursor: tuple[int, int, int]) -> Sequence[store.Archive]:
        """Return the months that left with events after a cursor of the feed."""
        return [
            one
            for one in await self.all()
            if (one.last_epoch or 0, one.last_txid or 0, one.last_id or 0) > cursor
        ]

    async def check(self, path: Path) -> ArchiveContent:
        """Read an archive whole; return what it holds. Raises Refused."""
        return await asyncio.to_thread(check_archive, path)

    async def restore(self, path: Path, actor: Actor) -> ArchiveContent:
        """Bring an archived month back, as it was, with every cursor.

        Raises NotPermitted, Refused (no whole archive, or not of a month that left), Conflict.
        """
        self._policy.check(self._policy.resolve(actor), Verb.RESTORE)
        found = await self.check(path)
        async with self._db.transaction() as conn:
            await self._begin(conn)
            await self._left(conn, found)
            await store.make_partition(conn, found.month)  # alone: it locks the trail
        async with self._db.transaction() as conn:
            await self._begin(conn)
            await self._left(conn, found)
            if await store.copy_in(conn, _lines(path)) != found.events:
                raise Refused(f"{path} changed while it was read")
            await store.forget(conn, found.month)
        return found

    async def _prune_logs(self, term: LeaderTerm) -> int:
        months = self._retention.logs
        if months is None:
            return 0
        return await self._db.run_transaction(
            lambda c: store.prune_logs(c, term, months, self._limit)
        )

    async def _prune_events(self, term: LeaderTerm) -> int:
        months = self._retention.events
        if months is None:
            return 0
        async with self._db.transaction() as conn:
            await self._begin(conn)
            for month in await store.due(conn, term, months):
                gone = await self._prune_month(conn, term, month, months)
                if gone is not None:
                    return gone
        return 0

    async def _prune_month(
        self, conn: Connection, term: LeaderTerm, month: date, months: int
    ) -> int | None:
        """Archive, verify and drop one month; None when it stays."""
        if not await store.lock_month(conn, month) or await store.holders(conn, month, months, 1):
            return None
        try:
            path, written = await self._write(conn, month)
            read = await self.check(path)
        except OSError as error:
            where = error.filename or self._folder
            raise Refused(f"the archive cannot be written: {where}: {error.strerror}") from None
        if read != written or read.events != await store.count(conn, month):
            raise Refused(f"{path} does not hold what was written to it; {month:%Y-%m} stays")
        named = {"sha256": read.sha256, "host": host.name(), "path": str(path)}
        gone = await store.drop(conn, term, month, **named)
        if gone is not None:
            _log.info("pruned %s events of %s, archived in %s", gone, f"{month:%Y-%m}", path)
        return gone

    async def _write(self, conn: Connection, month: date) -> tuple[Path, ArchiveContent]:
        writer = await asyncio.to_thread(ArchiveWriter, self._folder.absolute(), month)
        try:
            buffer = bytearray()
            async for line in store.copy_out(conn, month):
                buffer += line
                if len(buffer) >= BLOCK:
                    await asyncio.to_thread(writer.write, bytes(buffer))
                    buffer.clear()
            await asyncio.to_thread(writer.write, bytes(buffer))
            return await asyncio.to_thread(writer.finish)
        finally:
            writer.discard()

    async def _look(self, conn: Connection, month: date, months: int) -> RetentionMonth:
        found = await store.holders(conn, month, months, MAX_HOLDERS_SHOWN)
        names = tuple(f"D-{one.job} ({one.status})" for one in found)
        return RetentionMonth(
            month, await store.count(conn, month), found[0].of if found else 0, names
        )

    async def _begin(self, conn: Connection) -> None:
        if not await store.begin(conn, lock=LOCK_TIMEOUT, statement=STATEMENT_TIMEOUT):
            raise LostRace("another process prunes or restores just now; try again")

    async def _left(self, conn: Connection, found: ArchiveContent) -> None:
        """Raise unless the month left, with just these events, and is still away."""
        known = {one.month: one for one in await store.archives(conn)}
        month = f"{found.month:%Y-%m}"
        if found.month not in known:
            raise Refused(f"this database pruned no {month}", hint=CommandHint("archives list"))

        if known[found.month].sha256 != found.sha256:
            raise Refused(f"this is another archive of {month} than the one this database made")
        if await store.count(conn, found.month):
            raise Conflict(f"events were written to {month} since it was pruned; it stays archived")


async def _lines(path: Path) -> AsyncIterator[bytes]:
    parts = read_blocks(path)
    while (block := await asyncio.to_thread(next, parts, None)) is not None:
        yield block
