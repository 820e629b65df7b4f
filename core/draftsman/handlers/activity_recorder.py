"""The activity of a run, stored in batches: the newest rows, and a transcript of all of them."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import logging
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final

from draftsman.agent_runs.activity.activity import Activity, ActivityBuffer, AgentProgress
from draftsman.agent_runs.activity.service import ActivityStream
from draftsman.errors import DraftsmanError, LeaseLost
from draftsman.ids import job_name
from draftsman.jobs.runs.quota import QuotaLimit
from draftsman.jobs.runs.run import Lease
from draftsman.log import redact
from draftsman.settings.quotas import QuotaSettings

DELAY: Final = 0.5
"""Seconds between two batches."""
TRANSCRIPT_PART: Final = 64 * 1024
"""Bytes of a transcript that are stored at once."""
TRANSCRIPT_DELAY: Final = 30.0
"""Maximum seconds until a smaller part is stored."""
CHAT_INTERVAL: Final = 5.0
"""Minimum seconds between two edits of the status message in chat."""
CHAT_SHARE: Final = 0.05
"""Minimum share of the run time between two edits: a run of an hour has about a hundred."""
NO_CHAT_INTERVAL: Final = 60.0
"""Seconds until a job without chats is checked again."""
TRUNCATED: Final = '{"kind": "note", "text": "transcript truncated: [quotas] transcript_bytes"}\n'
"""The last line of a transcript over its limit, beyond which it is stored."""
_log = logging.getLogger(__name__)


class ActivityRecorder:
    """Stores the activity of a run: a commit each half second, whatever the agent sends.

    `add` never waits: the buffer omits activity over the limits of a batch. `hide` replaces what
    nobody may read.
    """

    def __init__(
        self,
        stream: ActivityStream,
        lease: Lease,
        quotas: QuotaSettings,
        *,
        hide: Callable[[str], str] = str,
    ) -> None:
        self._stream = stream
        self._lease = lease
        self._limit = QuotaLimit(quotas.activity_rows, quotas.activity_bytes)
        self._transcript = _Transcript(stream, lease, quotas)
        self._chat = _ChatProgress(stream, lease)
        self._buffer = ActivityBuffer(lambda text: redact(hide(text)))
        self._batch: Sequence[Activity] = ()  # being stored, unchanged until it is confirmed
        self._batch_at = 0.0
        self._began_at = 0.0
        """When the batch and the buffer began, by the monotonic clock."""
        self._seq = 1
        self._lost = False
        self._store_lock = asyncio.Lock()
        self._writer: asyncio.Task[None] | None = None

    def add(self, item: Activity) -> None:
        """Add activity, which is stored within a second."""
        if self._lost:
            return
        self._buffer.add(item)
        self._began_at = self._began_at or time.monotonic()
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write())

    async def close(self) -> None:
        """Store the rest, and the transcript; nothing if the lease is lost."""
        if self._writer is not None:
            self._writer.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._writer
        with contextlib.suppress(LeaseLost):
            await self._flush(final=True)
            await self._transcript.store(final=True)

    async def _write(self) -> None:
        while (self._batch or self._buffer or self._chat.changed) and not self._lost:
            await asyncio.sleep(DELAY)
            try:
                await asyncio.shield(asyncio.ensure_future(self._flush()))
            except LeaseLost:
                self._lost = True
            except DraftsmanError as error:
                _log.warning(
                    "cannot store the activity of %s, retrying: %s",
                    job_name(self._lease.job),
                    error,
                )

    async def _flush(self, *, final: bool = False) -> None:
        async with self._store_lock:
            while True:
                retried = bool(self._batch)
                if not retried:
                    now = time.monotonic()
                    self._batch = self._buffer.take(now, final=final)
                    self._batch_at = self._began_at or now
                    self._began_at = now if self._buffer else 0.0
                if self._batch:
                    age = time.monotonic() - self._batch_at
                    at = await self._stream.append(
                        self._lease, self._seq, self._batch, self._limit, age
                    )
                    self._transcript.add(self._seq, self._batch, at)
                    self._chat.add(self._batch)
                    self._seq += len(self._batch)
                    self._batch = ()
                if not (retried and final):
                    break
            await self._transcript.store()
            if not final:
                await self._chat.show()


class _ChatProgress:
    """Progress of the run in the status messages of its job."""

    def __init__(self, stream: ActivityStream, lease: Lease) -> None:
        self._stream = stream
        self._lease = lease
        self._progress = AgentProgress()
        self._shown_text = ""
        self._started_at = time.monotonic()
        self._due_at = self._started_at + CHAT_INTERVAL

    @property
    def changed(self) -> bool:
        """Whether the messages do not show the newest progress yet."""
        return self._progress.text != self._shown_text

    def add(self, rows: Sequence[Activity]) -> None:
        """Follow a batch."""
        for row in rows:
            self._progress.add(row)

    async def show(self) -> None:
        """Edit the messages, if it is time."""
        now = time.monotonic()
        text = self._progress.text
        if not self.changed or now < self._due_at:
            return
        chats = await self._stream.show(self._lease, self._progress.plan, self._progress.line)
        interval = max(CHAT_INTERVAL, CHAT_SHARE * (now - self._started_at))
        self._shown_text = text
        self._due_at = now + (interval if chats else NO_CHAT_INTERVAL)


class _Transcript:
    """The transcript of a run, which grows by parts."""

    def __init__(self, stream: ActivityStream, lease: Lease, quotas: QuotaSettings) -> None:
        self._stream = stream
        self._lease = lease
        self._remaining = quotas.transcript_bytes
        self._most = quotas.job_transcript_bytes + len(TRUNCATED)
        self._unstored = b""
        self._part: bytes | None = None  # being stored, unchanged until it is confirmed
        self._seq = 0
        self._size = 0
        self._digest = hashlib.sha256()
        self._stored_at = time.monotonic()

    def add(self, first: int, rows: Sequence[Activity], at: datetime) -> None:
        """Append a line for each item."""
        for seq, row in enumerate(rows, first):
            if self._remaining <= 0:
                return
            line = _line(self._lease.run, seq, row, at)
            self._remaining -= len(line)
            self._unstored += line if self._remaining > 0 else TRUNCATED.encode()

    async def store(self, *, final: bool = False) -> None:
        """Store the part that is complete, or that waited long enough."""
        waited = time.monotonic() - self._stored_at > TRANSCRIPT_DELAY
        if self._part is None:
            if not self._unstored or not (
                final or waited or len(self._unstored) >= TRANSCRIPT_PART
            ):
                return
            self._part = self._unstored
            self._unstored = b""
        digest = self._digest.copy()
        digest.update(self._part)
        size = self._size + len(self._part)
        stored = await self._stream.append_transcript(
            self._lease,
            self._seq,
            self._part,
            size=size,
            sha256=digest.hexdigest(),
            most=self._most,
        )
        self._part = None
        self._stored_at = time.monotonic()
        if not stored:
            self._remaining = 0
            self._unstored = b""
            return
        self._digest = digest
        self._size = size
        self._seq += 1
        if final:
            await self.store(final=True)


def _line(run: int, seq: int, item: Activity, at: datetime) -> bytes:
    fields = {"run": run, "seq": seq, "at": at.isoformat(), "kind": item.kind, "text": item.text}
    optional = {"state": item.state, "key": item.key, "detail": dict(item.detail)}
    fields |= {name: value for name, value in optional.items() if value}
    fields |= {"continues": True} if item.continues else {}
    return (json.dumps(fields, ensure_ascii=False) + "\n").encode("utf-8", "replace")
