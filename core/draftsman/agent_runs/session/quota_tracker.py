"""Quotas of a run of an agent: messages, stored data and disk usage."""

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

from draftsman.errors import Failure
from draftsman.handlers.worker_run import WorkerRun
from draftsman.jobs.runs.quota import Quota, QuotaLimit, quota_failure
from draftsman.sandbox.processes.process import AgentProcess
from draftsman.settings.quotas import QuotaSettings

ENTRY_BYTES: Final = 512
"""Bytes counted for each file or folder in addition to its blocks."""
SCAN_TIMEOUT: Final = 60.0
"""Maximum seconds of a scan."""
PAUSE_FACTOR: Final = 10.0
"""Minimum pause after a scan, as a multiple of the duration of the scan."""


class QuotaTracker:
    """Counts the messages of an agent's run. Raises Failure `quota:…`, of class PERMANENT."""

    def __init__(self, run: WorkerRun) -> None:
        self._run = run
        self._quotas = run.settings.quotas
        self._messages = 0

    def message(self) -> None:
        """Count a line of any type."""
        self._messages += 1
        if self._messages > (limit := self._quotas.messages):
            raise quota_failure(
                "messages", f"the agent sent more than {limit:,} messages", "messages"
            )

    async def spend(self, quota: Quota, size: int = 0) -> None:
        """Count a use, with its bytes, for the job."""
        limit = limit_of(self._quotas, quota)
        if not await self._run.spend(quota, size, limit):
            settings = [str(quota)]
            text = f"the job has more than {limit.count:,} {quota}"
            if (setting := BYTE_LIMITS.get(quota)) is not None:
                settings.append(setting)
                text += f" or more than {limit.bytes:,} bytes of {quota}"
            raise quota_failure(quota, text, " and ".join(settings))


BYTE_LIMITS: Final = {
    Quota.STEPS: "step_bytes",
    Quota.ARTIFACTS: "artifact_bytes",
    Quota.CHECKPOINTS: "checkpoint_bytes",
}
"""Settings that limit the bytes of a quota."""


def limit_of(quotas: QuotaSettings, quota: Quota) -> QuotaLimit:
    """Return the configured limit of a quota."""
    count = getattr(quotas, quota)
    name = BYTE_LIMITS.get(quota)
    return QuotaLimit(count) if name is None else QuotaLimit(count, getattr(quotas, name))


def size_of(value: Any) -> int:
    """Return the size of a value as JSON, in bytes."""
    return len(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))


async def watch_disk(folder: Path, quotas: QuotaSettings) -> Failure:
    """Scan a folder periodically; return a failure once it is over its quota."""
    limit = quotas.disk_bytes
    while True:
        started = time.monotonic()
        size = await asyncio.to_thread(disk_usage, folder, limit)
        if size > limit:
            text = f"the files of the run use more than {limit:,} bytes"
            return quota_failure("disk", text, "disk_bytes")
        duration = time.monotonic() - started
        await asyncio.sleep(max(quotas.disk_interval, PAUSE_FACTOR * duration))


@contextlib.asynccontextmanager
async def enforce_disk_quota(
    process: AgentProcess, folder: Path, quotas: QuotaSettings
) -> AsyncIterator[None]:
    """Kill a program once its folder is over the disk quota, and raise the failure."""

    async def kill_over_quota() -> Failure:
        failure = await watch_disk(folder, quotas)
        process.kill()
        return failure

    watch = asyncio.create_task(kill_over_quota())
    try:
        yield
    finally:
        watch.cancel()
        (outcome,) = await asyncio.gather(watch, return_exceptions=True)
    if isinstance(outcome, Failure):
        raise outcome


def disk_usage(folder: Path, limit: int) -> int:
    """Return the bytes that a folder uses on disk; stops at the first number over `limit`.

    Links are not followed, and a file with several names counts once. A path that is too long to
    scan counts as over the limit, since files could be hidden there.
    """
    total = 0
    counted = set[tuple[int, int]]()
    folders = [os.fspath(folder)]
    deadline = time.monotonic() + SCAN_TIMEOUT
    while folders and total <= limit and time.monotonic() < deadline:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    total += _size(entry, counted)
                    if total > limit:
                        break
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                return limit + 1
    return total


def _size(entry: os.DirEntry[str], counted: set[tuple[int, int]]) -> int:
    """Return the bytes of an entry; 0 if it was deleted meanwhile, or counted before."""
    try:
        status = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return 0
    if status.st_nlink > 1 and not stat.S_ISDIR(status.st_mode):
        if (status.st_dev, status.st_ino) in counted:
            return 0
        counted.add((status.st_dev, status.st_ino))
    return status.st_blocks * 512 + ENTRY_BYTES
