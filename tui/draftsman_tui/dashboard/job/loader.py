"""Looks at one job for the live source, and reads only what may have changed.

Two small queries tell whether anything did: where the job stands, and its events after the last
one. The log, the changes and the like are read while their part is in view.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from draftsman.domain.job import LEASED, TERMINAL, Status
from draftsman.domain.messages.delivery import DeliveryStatus
from draftsman.domain.question import QuestionStatus
from draftsman.services.runs.checkpoints import MAX_RUN
from draftsman_tui.common.question_text import answerers
from draftsman_tui.dashboard.job.log_buffer import LINES, LogBuffer
from draftsman_tui.dashboard.job.snapshot import JobLoaded, JobPatch, JobSnapshot

if TYPE_CHECKING:
    from draftsman.domain.event import Event
    from draftsman.runtime import Runtime

EVENTS: Final = 500
"""Events that are kept, the newest."""
TOLD: Final = 200
"""Deliveries that are shown, the newest."""
BYTES: Final = 1_000_000
"""Characters of a log that one look reads, more or less; who is behind goes on from the end."""
CHUNKS: Final = 20
"""Pieces of a log that the first query of a look reads."""
MEBIBYTES: Final = 1
"""Of a patch that is shown."""
FOLLOWING: Final = 1.0
MOVING: Final = 2.0
OVER: Final = 30.0
"""Seconds between two looks at a running job's log, at a live job, at one that is over."""
WHOLE: Final = 20.0
"""Seconds after which all of a live job is read anew, though nothing said that it changed."""
_ENDED: Final = {DeliveryStatus.SENT, DeliveryStatus.SUPERSEDED, DeliveryStatus.DEAD}


class JobLoader:
    """What the job screen looks at. It remembers how far it has read."""

    def __init__(self, number: int, part: str = "timeline", run: int | None = None) -> None:
        self.number = number
        self.part = part
        """The part in view."""
        self._book = LogBuffer(run)
        self._stand: tuple[Status, int] | None = None
        self._seen: JobSnapshot | None = None
        self._patch: tuple[int, str] | None = None
        self._whole_at: float | None = None
        self._why_at = 0.0

    @property
    def poll_interval(self) -> float:
        """Often while a log grows, hardly ever when all is over."""
        if self._seen is None:
            return MOVING
        if self._seen.over:
            sending = any(one.status not in _ENDED for one in self._seen.deliveries)
            return MOVING if sending and self.part == "deliveries" else OVER
        following = self.part == "log" and self._seen.job.status in LEASED
        return FOLLOWING if following else MOVING

    def is_affected_by(self, events: Sequence[Event]) -> bool:
        """Return whether one of them is of this job, or may be."""
        if not events:
            return self._seen is None or not self._seen.over
        return any(event.job == self.number for event in events)

    @property
    def run(self) -> int | None:
        """The only run whose log is read; None: all."""
        return self._book.run

    def forget(self) -> None:
        """Read all anew the next time."""
        self._whole_at = None

    def show_run(self, run: int | None) -> None:
        """Read the log of this run alone, or of all."""
        if run != self._book.run:
            self._book = LogBuffer(run)

    async def read(self, rt: Runtime, now: datetime) -> JobLoaded:
        """Return the job as it is now; raises NotFound."""
        stand = await rt.read_model.status_and_version(self.number)
        last = self._seen.events[-1].id if self._seen and self._seen.events else 0
        fresh = await rt.read_model.latest_job_events(self.number, last, EVENTS + 1)
        moved = stand != self._stand or any(_is_telling(event) for event in fresh)
        if self._whole_at is None or time.monotonic() - self._whole_at > WHOLE:
            seen = await self._all(rt, now)
        else:
            assert self._seen is not None  # noqa: S101 (all was read)
            seen = replace(self._seen, at=now)
            if moved:
                job = await rt.read_model.job(self.number)
                seen = await self._around(rt, replace(seen, job=job))
        seen = await self._why(rt, _with(seen, fresh), again=moved)
        self._seen = await self._in_view(rt, seen, changed=moved)
        self._stand = stand
        return JobLoaded(self._seen)

    async def _all(self, rt: Runtime, now: datetime) -> JobSnapshot:
        job = await rt.read_model.job(self.number)
        before = self._seen or JobSnapshot(job, now, logs_kept=rt.settings.retention.logs)
        archived = await rt.archives.of_job(self.number)
        self._whole_at = time.monotonic()
        return await self._around(rt, replace(before, job=job, at=now, archived=archived))

    async def _around(self, rt: Runtime, seen: JobSnapshot) -> JobSnapshot:
        """Read what comes with a job and is small."""
        questions, answers = await rt.questions.of_job(self.number)
        open_ones = [one for one in questions if one.status is QuestionStatus.OPEN]
        return replace(
            await self._told(rt, seen),
            runs=await rt.read_model.runs(self.number),
            questions=questions,
            answers=answers,
            asked={one.ordinal: await answerers(rt, one) for one in open_ones},
            targets=await rt.outbox.targets(self.number),
            files=await rt.checkpoints.artifacts(self.number),
            chain=await rt.read_model.chain(self.number),
        )

    async def _told(self, rt: Runtime, seen: JobSnapshot) -> JobSnapshot:
        return replace(seen, deliveries=await rt.outbox.all(self.number, limit=TOLD))

    async def _why(self, rt: Runtime, seen: JobSnapshot, *, again: bool) -> JobSnapshot:
        if seen.job.status in TERMINAL:
            return replace(seen, why=None)
        if seen.why is not None and not again and time.monotonic() - self._why_at < MOVING:
            return seen
        self._why_at = time.monotonic()
        return replace(seen, why=await rt.read_model.why(self.number))

    async def _in_view(self, rt: Runtime, seen: JobSnapshot, *, changed: bool) -> JobSnapshot:
        match self.part:
            case "log":
                await self._read_log(rt)
                return replace(seen, log=self._book.seen())
            case "diff":
                return await self._read_patch(rt, seen)
            case "deliveries" if not changed:
                return await self._told(rt, seen)
            case "runs" | "usage" if not changed and not seen.over:
                return replace(seen, runs=await rt.read_model.runs(self.number))
            case "artifacts" if not changed and not seen.over:
                return replace(seen, files=await rt.checkpoints.artifacts(self.number))
            case _:
                return seen

    async def _read_log(self, rt: Runtime) -> None:
        """Read what is new backwards from the end, until it joins what is known or is enough."""
        book, limit = self._book, CHUNKS
        before = (MAX_RUN, 0) if book.run is None else (book.run + 1, -1)
        chunks: list[Any] = []
        size = lines = 0
        while True:
            found = await rt.checkpoints.log_end(self.number, book.cursor, before, limit)
            chunks[:0] = found
            size += sum(len(one.text) for one in found)
            lines += sum(one.text.count("\n") for one in found)
            if len(found) < limit:
                book.add(chunks)
                return
            if size >= BYTES or lines >= LINES:
                book.add(chunks, gap=True)
                return
            before = found[0].run, found[0].seq
            limit = max(CHUNKS, min(1000, int((BYTES - size) * len(chunks) / max(1, size))))

    async def _read_patch(self, rt: Runtime, seen: JobSnapshot) -> JobSnapshot:
        if not seen.over:
            seen = replace(seen, files=await rt.checkpoints.artifacts(self.number))
        newest = next((one for one in reversed(seen.files) if one.kind == "patch"), None)
        if newest is None:
            self._patch = None
            return replace(seen, patch=None)
        if self._patch == (newest.id, newest.sha256):
            return seen
        data = await rt.checkpoints.content(newest, most=MEBIBYTES)
        self._patch = newest.id, newest.sha256
        text = data.decode("utf-8", "replace")
        return replace(seen, patch=JobPatch(text, newest.size, cut=len(data) < newest.size))


def _is_telling(event: Event) -> bool:
    """Return whether an event may have changed more than the trail: the words of a run do not."""
    return event.to_status is not None or not event.actor.startswith("worker:")


def _with(seen: JobSnapshot, fresh: Sequence[Event]) -> JobSnapshot:
    """Add events to those that are known, and keep the newest."""
    events = (*seen.events, *fresh)
    return replace(seen, events=events[-EVENTS:], earlier=seen.earlier or len(events) > EVENTS)
