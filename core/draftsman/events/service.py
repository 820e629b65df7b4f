"""Pruning of event partitions into archive files, and restoring them.

A month is pruned in one transaction: its partition is locked against writers and archived, the
archive is read back from disk, and only then the partition is dropped. A crash at any point leaves
the partition, the verified archive, or both.
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import hashlib
import json
import logging
import os
import tempfile
import time
import zlib
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from draftsman.database.database import Connection, Database, on_connection
from draftsman.database.isolation import run_all
from draftsman.errors import CommandHint, Conflict, LostRace, Refused
from draftsman.events import store
from draftsman.events.archive import Archive
from draftsman.ids import job_name
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.jobs.runs.sweep import Sweep
from draftsman.people.actor import Actor
from draftsman.people.policy import Policy, Verb
from draftsman.processes import host

if TYPE_CHECKING:
    from draftsman.settings.retention import RetentionSettings


# The archive file of a month of events.
#
# A gzip stream of three parts: a header line of JSON, the events as lines of COPY in commit order,
# and a line `\.` with their count and SHA-256. No line of COPY starts with `\.`.


KIND: Final = "draftsman events"
VERSION: Final = 1
BLOCK: Final = 1024 * 1024
"""Bytes read and written at once."""
STALE_AFTER: Final = 86_400.0
"""Seconds after which an unfinished file counts as abandoned."""


@dataclass(frozen=True, slots=True)
class ArchiveContent:
    """The month, number of events and SHA-256 of an archive."""

    month: date
    events: int
    sha256: str


class ArchiveWriter:
    """Writes an archive to a temporary file, which gets its final name when it is complete."""

    def __init__(self, folder: Path, month: date) -> None:
        self._folder = folder
        self._month = month
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _delete_abandoned(folder)
        fd, name = tempfile.mkstemp(".part", f".{_stem(month)}-", folder)
        self._part = Path(name)
        self._raw: IO[bytes] = os.fdopen(fd, "wb")
        self._file = gzip.GzipFile(filename="", mode="wb", fileobj=self._raw, mtime=0)
        self._hash = hashlib.sha256()
        self._events = 0
        self._write_json({"kind": KIND, "v": VERSION, "month": month.isoformat()})

    def write(self, lines: bytes) -> None:
        """Append whole lines of COPY."""
        self._hash.update(lines)
        self._events += lines.count(b"\n")
        self._file.write(lines)

    def finish(self) -> tuple[Path, ArchiveContent]:
        """Flush to disk and rename by content; return the path and the content."""
        content = ArchiveContent(self._month, self._events, self._hash.hexdigest())
        self._write_json({"events": content.events, "sha256": content.sha256}, "\\.")
        self._file.close()
        self._raw.flush()
        os.fsync(self._raw.fileno())
        self._raw.close()
        # Two databases may share the folder: the checksum keeps their files apart.
        path = self._folder / f"{_stem(self._month)}-{content.sha256[:16]}.gz"
        self._part.rename(path)
        folder = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        return path, content

    def discard(self) -> None:
        """Delete an unfinished file; no effect after `finish`."""
        with contextlib.suppress(OSError):
            self._raw.close()
        with contextlib.suppress(OSError):
            self._part.unlink()

    def _write_json(self, data: dict[str, Any], before: str = "") -> None:
        self._file.write(f"{before}{json.dumps(data)}\n".encode())


def check_archive(path: Path) -> ArchiveContent:
    """Verify an archive and return its content. Raises Refused."""
    digest = hashlib.sha256()
    events = 0
    try:
        with _open(path) as file:
            month = _month(json.loads(file.readline()))
            for line in file:
                if line.startswith(b"\\."):
                    trailer = json.loads(line[2:])
                    break
                digest.update(line)
                events += 1
            else:
                raise ValueError("the end is missing")
            if file.read(1):
                raise ValueError("unexpected data after the end")
        if (trailer["events"], trailer["sha256"]) != (events, digest.hexdigest()):
            raise ValueError("the checksum does not match")
    except (ValueError, KeyError, TypeError, AttributeError, EOFError, zlib.error) as error:
        raise Refused(f"{path} is not a valid event archive: {error}") from None
    return ArchiveContent(month, events, digest.hexdigest())


def read_blocks(path: Path) -> Iterator[bytes]:
    """Yield the lines of a verified archive in blocks."""
    with _open(path) as file:
        file.readline()
        while lines := file.readlines(BLOCK):
            if lines[-1].startswith(b"\\."):
                yield b"".join(lines[:-1])
                return
            yield b"".join(lines)


@contextlib.contextmanager
def _open(path: Path) -> Iterator[gzip.GzipFile]:
    try:
        with gzip.open(path, "rb") as file:
            yield file
    except gzip.BadGzipFile as error:
        raise ValueError(str(error)) from None
    except OSError as error:
        raise Refused(f"cannot read {path}: {error.strerror}") from None


def _month(head: Any) -> date:
    if (head["kind"], head["v"]) != (KIND, VERSION):
        raise ValueError(f"unsupported kind {head['kind']!r}, version {head['v']!r}")
    return date.fromisoformat(head["month"])


def _stem(month: date) -> str:
    return f"events-{month:%Y-%m}"


def _delete_abandoned(folder: Path) -> None:
    """Delete the files of writers that were killed."""
    for part in folder.glob(".events-*.part"):
        with contextlib.suppress(OSError):
            if time.time() - part.stat().st_mtime > STALE_AFTER:
                part.unlink()


PRUNE_INTERVAL: Final = 3600.0
"""Minimum seconds between two runs of the sweep that archives months."""
MONTHS_AHEAD: Final = 3
"""Months whose partitions exist before they begin."""
LOCK_TIMEOUT: Final = "1s"
"""Maximum time that others may wait behind this lock on the events; then pruning is put off."""
STATEMENT_TIMEOUT: Final = "1h"
"""Maximum time of one statement over a month."""
MAX_HOLDERS_SHOWN: Final = 5
"""Maximum number of jobs listed that hold a month."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RetentionMonth:
    """A month older than the retention, and whether it can be pruned.

    `held_by` lists the first of `holders` jobs. `partition` is False for a month in the default
    partition, which is never dropped.
    """

    month: date
    events: int
    holders: int
    held_by: tuple[str, ...]
    partition: bool = True

    @property
    def state(self) -> str:
        """Describe whether it can be pruned."""
        if not self.partition:
            return "never: its events are in the default partition"
        if not self.holders:
            return "can be pruned"
        omission = (
            f" and {self.holders - len(self.held_by)} more"
            if self.holders > MAX_HOLDERS_SHOWN
            else ""
        )
        return f"held by {', '.join(self.held_by)}{omission}"


class Archives:
    """Pruning, restoring, and queries of archives."""

    def __init__(
        self,
        *,
        db: Database,
        policy: Policy,
        retention: RetentionSettings,
        folder: Path,
        limit: int,
    ) -> None:
        """Archive into `folder`; logs of `limit` jobs are deleted in a transaction."""
        self._db = db
        self._policy = policy
        self._retention = retention
        self._folder = folder
        self._limit = limit

    def sweeps(self) -> Sequence[Sweep]:
        """Return the sweeps of the coming months and of those past the retention."""
        return [
            Sweep(
                name="partitions",
                description="creates the event partitions of the coming months",
                run=self.make_partitions,
            ),
            Sweep(
                name="prune",
                description="archives and drops events and logs past their retention",
                run=self.prune,
                min_interval=PRUNE_INTERVAL,
            ),
        ]

    async def make_partitions(self, term: LeaderTerm) -> int:
        """Create the event partitions of the coming months; return their number."""
        return await self._db.run_transaction(
            lambda conn: store.partitions(conn, term, MONTHS_AHEAD)
        )

    async def prune(self, term: LeaderTerm) -> int:
        """Delete old logs, then archive and drop the oldest month that no job holds.

        Return the number of deleted rows. Raises Refused (the archive cannot be written), LostRace.
        """
        return await run_all(lambda: self._prune_logs(term), lambda: self._prune_events(term))

    async def plan(self) -> list[RetentionMonth]:
        """Return the months that are older than the retention, oldest first; change nothing."""
        months = self._retention.events
        if months is None:
            return []
        async with self._db.connection() as conn:
            due = await store.due(conn, LeaderTerm(), months)
            plan = [await self._plan_month(conn, month, months) for month in due]
            unpartitioned = await store.default_partition_months(conn, months)
        plan += [
            RetentionMonth(month, events, 0, (), partition=False) for month, events in unpartitioned
        ]
        return sorted(plan, key=lambda entry: entry.month)

    all = on_connection(store.archives)
    of_job = on_connection(store.of_job)

    async def after(self, cursor: tuple[int, int, int]) -> Sequence[Archive]:
        """Return the archived months with events after a cursor."""
        return [
            archive
            for archive in await self.all()
            if (archive.last_epoch or 0, archive.last_txid or 0, archive.last_id or 0) > cursor
        ]

    async def check(self, path: Path) -> ArchiveContent:
        """Verify an archive and return its content. Raises Refused."""
        return await asyncio.to_thread(check_archive, path)

    async def restore(self, path: Path, actor: Actor) -> ArchiveContent:
        """Restore an archived month with its events and cursors.

        Raises NotPermitted, Refused (invalid archive, or not of a pruned month), Conflict.
        """
        self._policy.check(self._policy.resolve(actor), Verb.RESTORE)
        content = await self.check(path)
        async with self._db.transaction() as conn:
            await self._begin(conn)
            await self._check_restorable(conn, content)
            await store.make_partition(conn, content.month)  # alone: it locks the events
        async with self._db.transaction() as conn:
            await self._begin(conn)
            await self._check_restorable(conn, content)
            if await store.copy_in(conn, _lines(path)) != content.events:
                raise Refused(f"{path} changed while it was being read")
            await store.forget(conn, content.month)
        return content

    async def _prune_logs(self, term: LeaderTerm) -> int:
        months = self._retention.logs
        if months is None:
            return 0

        async def work(conn: Connection) -> int:
            chunks = await store.prune_logs(conn, term, months, self._limit)
            return chunks + await store.prune_activity(conn, term, months, self._limit)

        return await self._db.run_transaction(work)

    async def _prune_events(self, term: LeaderTerm) -> int:
        months = self._retention.events
        if months is None:
            return 0
        async with self._db.transaction() as conn:
            await self._begin(conn)
            for month in await store.due(conn, term, months):
                count = await self._prune_month(conn, term, month, months)
                if count is not None:
                    return count
        return 0

    async def _prune_month(
        self, conn: Connection, term: LeaderTerm, month: date, months: int
    ) -> int | None:
        """Archive, verify and drop a month; None when it is kept."""
        if not await store.lock_month(conn, month) or await store.holders(conn, month, months, 1):
            return None
        try:
            path, written = await self._write(conn, month)
            read = await self.check(path)
        except OSError as error:
            location = error.filename or self._folder
            raise Refused(f"cannot write the archive: {location}: {error.strerror}") from None
        if read != written or read.events != await store.count(conn, month):
            raise Refused(f"verification of {path} failed; {month:%Y-%m} was not pruned")
        archive = {"sha256": read.sha256, "host": host.name(), "path": str(path)}
        count = await store.drop(conn, term, month, **archive)
        if count is not None:
            _log.info("pruned %s events of %s, archived in %s", count, f"{month:%Y-%m}", path)
        return count

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

    async def _plan_month(self, conn: Connection, month: date, months: int) -> RetentionMonth:
        holders = await store.holders(conn, month, months, MAX_HOLDERS_SHOWN)
        names = tuple(f"{job_name(holder.job)} ({holder.status})" for holder in holders)
        return RetentionMonth(
            month, await store.count(conn, month), holders[0].of if holders else 0, names
        )

    async def _begin(self, conn: Connection) -> None:
        if not await store.begin(conn, lock=LOCK_TIMEOUT, statement=STATEMENT_TIMEOUT):
            raise LostRace("another process is pruning or restoring; try again")

    async def _check_restorable(self, conn: Connection, content: ArchiveContent) -> None:
        """Raise unless the month was pruned with exactly these events and is still pruned."""
        archives = {archive.month: archive for archive in await store.archives(conn)}
        month = f"{content.month:%Y-%m}"
        if content.month not in archives:
            raise Refused(
                f"{month} was not pruned from this database", hint=CommandHint("archives list")
            )

        if archives[content.month].sha256 != content.sha256:
            raise Refused(
                f"the archive of {month} does not have the checksum that was recorded at pruning"
            )
        if await store.count(conn, content.month):
            raise Conflict(f"{month} has new events since it was pruned; it cannot be restored")


async def _lines(path: Path) -> AsyncIterator[bytes]:
    blocks = read_blocks(path)
    while (block := await asyncio.to_thread(next, blocks, None)) is not None:
        yield block
