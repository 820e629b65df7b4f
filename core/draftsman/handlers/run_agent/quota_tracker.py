"""Holds one run of an agent to its quotas: its messages, what they leave, and its disk."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import stat
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

from draftsman.domain.quota import Quota, QuotaLimit, quota_failure
from draftsman.errors import Failure
from draftsman.handlers.context import RunContext
from draftsman.handlers.subprocesses.process import AgentProcess
from draftsman.settings import QuotaSettings

ENTRY_BYTES: Final = 512
"""Bytes that a file or folder counts for besides its blocks."""
SCAN_TIMEOUT: Final = 60.0
"""Seconds of one measurement at most."""
PAUSE_FACTOR: Final = 10.0
"""How many times longer than a measurement took the pause after it is, at least."""


class QuotaTracker:
    """Counts what the agent of one run sends. Raises Failure `quota:…`, of class PERMANENT."""

    def __init__(self, ctx: RunContext) -> None:
        self._ctx = ctx
        self._quotas = ctx.settings.quotas
        self._messages = 0

    def message(self) -> None:
        """Count a line, whatever it says."""
        self._messages += 1
        if self._messages > (most := self._quotas.messages):
            raise quota_failure(
                "messages", f"the agent sent more than {most:,} messages", "messages"
            )

    async def spend(self, quota: Quota, size: int = 0) -> None:
        """Count a use of so many bytes for the job."""
        limit = limit_of(self._quotas, quota)
        if not await self._ctx.spend(quota, size, limit):
            settings = [str(quota)]
            text = f"the job has more than {limit.count:,} {quota}"
            if (most := BYTE_LIMITS.get(quota)) is not None:
                settings.append(most)
                text += f", or more than {limit.bytes:,} bytes of them"
            raise quota_failure(quota, text, " and ".join(settings))


BYTE_LIMITS: Final = {
    Quota.STEPS: "step_bytes",
    Quota.ARTIFACTS: "artifact_bytes",
    Quota.CHECKPOINTS: "checkpoint_bytes",
}
"""The setting that limits the bytes of a quota."""


def limit_of(quotas: QuotaSettings, quota: Quota) -> QuotaLimit:
    """Return the limit that is configured."""
    count = getattr(quotas, quota)
    name = BYTE_LIMITS.get(quota)
    return QuotaLimit(count) if name is None else QuotaLimit(count, getattr(quotas, name))


def size_of(value: Any) -> int:
    """Return the bytes of a value as JSON."""
    return len(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))


async def watch_disk(folder: Path, quotas: QuotaSettings) -> Failure:
    """Measure a folder again and again; return the failure once it is over its quota."""
    most = quotas.disk_bytes
    while True:
        began = time.monotonic()
        size = await asyncio.to_thread(disk_usage, folder, most)
        if size > most:
            text = f"the files of the run have more than {most:,} bytes"
            return quota_failure("disk", text, "disk_bytes")
        took = time.monotonic() - began
        await asyncio.sleep(max(quotas.disk_interval, PAUSE_FACTOR * took))


@contextlib.asynccontextmanager
async def enforce_disk_quota(
    process: AgentProcess, folder: Path, quotas: QuotaSettings
) -> AsyncIterator[None]:
    """Kill a program once the files of its folder are over their quota; raise the failure then."""

    async def limit() -> Failure:
        failure = await watch_disk(folder, quotas)
        process.kill()
        return failure

    watch = asyncio.create_task(limit())
    try:
        yield
    finally:
        watch.cancel()
        (found,) = await asyncio.gather(watch, return_exceptions=True)
    if isinstance(found, Failure):
        raise found


def disk_usage(folder: Path, most: int) -> int:
    """Return the bytes that a folder has on the disk, or a number over `most` once it is clear.

    It follows no link and counts a file with several names once. A path that is too long to be
    looked at is over: files could hide there.
    """
    total, seen = 0, set[tuple[int, int]]()
    folders, until = [os.fspath(folder)], time.monotonic() + SCAN_TIMEOUT
    while folders and total <= most and time.monotonic() < until:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    total += _size(entry, seen)
                    if total > most:
                        break
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                return most + 1
    return total


def _size(entry: os.DirEntry[str], seen: set[tuple[int, int]]) -> int:
    """Return the bytes of an entry; 0 for one that has just gone, or was counted before."""
    try:
        about = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return 0
    if about.st_nlink > 1 and not stat.S_ISDIR(about.st_mode):
        if (about.st_dev, about.st_ino) in seen:
            return 0
        seen.add((about.st_dev, about.st_ino))
    return about.st_blocks * 512 + ENTRY_BYTES
