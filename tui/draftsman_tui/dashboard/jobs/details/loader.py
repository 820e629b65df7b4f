"""Incremental loader of a job.

Two small queries detect changes: the job's status and version, and its events since the last
load. Log and diff are read only while their tab is shown.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from draftsman.agent_runs.activity.activity import AgentProgress
from draftsman.deliveries.delivery import DeliveryStatus
from draftsman.events.event import Event
from draftsman.formats.invisible import one_line
from draftsman.jobs.details.sections.questions import responders
from draftsman.jobs.job import LEASED, TERMINAL
from draftsman.jobs.runs.run import Run
from draftsman.jobs.runs.service.checkpoints import MAX_RUN
from draftsman.runtime import Runtime
from draftsman.workflows.groups import GroupState
from draftsman_tui.common.questions import owner_name
from draftsman_tui.dashboard.jobs.details.log_buffer import LINES, LogBuffer
from draftsman_tui.dashboard.jobs.details.snapshot import JobLoaded, JobPatch, JobSnapshot

EVENTS: Final = 500
"""Newest events to keep."""
LOG_CHARACTERS: Final = 1_000_000
"""Approximate characters of a log that a load reads; if more are unread, the oldest are skipped."""
ACTIVITY_ROWS: Final = 50
"""Newest rows of activity that a load reads for the header."""
LOG_CHUNKS: Final = 20
"""Log chunks that the first query of a load reads."""
PATCH_MEBIBYTES: Final = 20
"""Maximum size of a patch to show."""
LOG_INTERVAL: Final = 1.0
LIVE_INTERVAL: Final = 2.0
FINISHED_INTERVAL: Final = 30.0
"""Seconds between loads: the log of a running job, a live job, a finished job."""
FULL_RELOAD_INTERVAL: Final = 20.0
"""Seconds after which a live job is reloaded completely, even without changes."""
_LIVE_TABS: Final = frozenset({"deliveries", "runs", "usage", "related", "artifacts"})
"""Tabs whose data changes without a change of the job."""
_FINAL: Final = {DeliveryStatus.SENT, DeliveryStatus.SUPERSEDED, DeliveryStatus.DEAD_LETTER}


class JobLoader:
    """Loader of the job screen, with the state of previous loads."""

    def __init__(self, number: int, tab: str = "timeline", run: int | None = None) -> None:
        self.number = number
        self.tab = tab
        self._log_buffer = LogBuffer(run)
        self._snapshot: JobSnapshot | None = None
        self._patch: tuple[int, str] | None = None
        self._loaded_at: float | None = None
        self._invalidations = 0
        self._why_at = 0.0
        self._activity_cursor = (0, 0)
        self._progress = AgentProgress()

    @property
    def poll_interval(self) -> float:
        """Seconds between loads: short while a log grows, long for a finished job."""
        if self._snapshot is None:
            return LIVE_INTERVAL
        if self._snapshot.over:
            return LIVE_INTERVAL if self._is_live(self._snapshot) else FINISHED_INTERVAL
        following = self.tab == "log" and self._snapshot.job.status in LEASED
        return LOG_INTERVAL if following else LIVE_INTERVAL

    def _is_live(self, snapshot: JobSnapshot) -> bool:
        """Return whether the tab of a finished job can still change."""
        details = snapshot.details
        match self.tab:
            case "deliveries":
                return any(delivery.status not in _FINAL for delivery in details.deliveries)
            case "related":
                group = details.group is not None and details.group.state == GroupState.RUNNING
                return group or any(job.status not in TERMINAL for job in details.tree.jobs)
            case _:
                return False

    def is_affected_by(self, events: Sequence[Event]) -> bool:
        """Return whether the events concern this job; an empty list may."""
        if not events:
            return self._snapshot is None or not self._snapshot.over
        return any(event.job == self.number for event in events)

    @property
    def run(self) -> int | None:
        """Run whose log is read; None: all runs."""
        return self._log_buffer.run

    def invalidate(self) -> None:
        """Reload everything the next time."""
        self._loaded_at = None
        self._invalidations += 1

    def show_run(self, run: int | None) -> None:
        """Read the log of one run, or of all."""
        if run != self._log_buffer.run:
            full = self._log_buffer.full
            self._log_buffer = LogBuffer(run)
            self._log_buffer.full = full

    def fold_log(self, *, full: bool) -> None:
        """Fold the long texts of the log, or show all of them."""
        self._log_buffer.full = full

    async def read(self, rt: Runtime, now: datetime) -> JobLoaded:
        """Return a current snapshot; raises NotFound."""
        loaded_at = self._loaded_at
        began = time.monotonic()
        invalidations = self._invalidations
        if loaded_at is None or began - loaded_at > FULL_RELOAD_INTERVAL:
            loaded_at = began
            snapshot = await self._read_details(rt, now)
        else:
            assert self._snapshot is not None  # noqa: S101 (set by the first load)
            snapshot = await self._read_changes(rt, self._snapshot, now)
        snapshot = await self._read_activity(rt, snapshot)
        self._snapshot = await self._read_tab(rt, snapshot)
        # only now: a lost database cancels a read anywhere
        self._loaded_at = loaded_at if invalidations == self._invalidations else None
        return JobLoaded(self._snapshot)

    async def _read_details(self, rt: Runtime, now: datetime) -> JobSnapshot:
        details = await rt.read_model.details(self.number, events=EVENTS)
        self._why_at = time.monotonic()
        return replace(
            self._snapshot or JobSnapshot(details, now, logs_kept=rt.settings.retention.logs),
            details=details,
            at=now,
            responders=responders(details, rt.policy, owner_name(rt)),
            name_of=rt.policy.name_of,
        )

    async def _read_changes(self, rt: Runtime, snapshot: JobSnapshot, now: datetime) -> JobSnapshot:
        """Read the new events, and the job again if it may have changed more than these."""
        version = await rt.read_model.version(self.number)
        events = snapshot.details.events
        last = events[-1].id if events else 0
        new_events = await rt.read_model.latest_job_events(self.number, last, EVENTS + 1)
        changed = version != snapshot.details.version or any(map(_is_significant, new_events))
        if changed or (self.tab in _LIVE_TABS and (not snapshot.over or self._is_live(snapshot))):
            return await self._read_details(rt, now)
        snapshot = _add_events(replace(snapshot, at=now), new_events)
        if snapshot.over or time.monotonic() - self._why_at < LIVE_INTERVAL:
            return snapshot
        self._why_at = time.monotonic()
        why = await rt.read_model.why(self.number)
        return replace(snapshot, details=replace(snapshot.details, wait_reason=why))

    async def _read_activity(self, rt: Runtime, snapshot: JobSnapshot) -> JobSnapshot:
        """Read the new activity of a running job, for the header."""
        if snapshot.job.status not in LEASED:
            self._progress = AgentProgress()
            return snapshot
        rows = await rt.activity.newest(self.number, self._activity_cursor, ACTIVITY_ROWS)
        for row in rows:
            self._activity_cursor = row.run, row.seq
            if row.run == snapshot.job.run_count:
                self._progress.add(row)
        return replace(snapshot, doing=one_line(self._progress.text))

    async def _read_tab(self, rt: Runtime, snapshot: JobSnapshot) -> JobSnapshot:
        match self.tab:
            case "log":
                await self._read_log(rt, snapshot.details.runs)
                return replace(snapshot, log=self._log_buffer.view())
            case "diff":
                return await self._read_patch(rt, snapshot)
            case _:
                return snapshot

    async def _read_log(self, rt: Runtime, runs: Sequence[Run]) -> None:
        """Read new chunks backwards from the end, up to the last known chunk or the limits."""
        buffer = self._log_buffer
        limit = LOG_CHUNKS
        before = (MAX_RUN, 0) if buffer.run is None else (buffer.run + 1, -1)
        chunks: list[Any] = []
        size = lines = 0
        while True:
            chunk_page = await rt.checkpoints.log_end(self.number, buffer.cursor, before, limit)
            chunks[:0] = chunk_page
            size += sum(len(chunk.text) for chunk in chunk_page)
            lines += sum(chunk.text.count("\n") for chunk in chunk_page)
            gap = len(chunk_page) == limit
            if not gap or size >= LOG_CHARACTERS or lines >= LINES:
                break
            before = chunk_page[0].run, chunk_page[0].seq
            limit = max(
                LOG_CHUNKS, min(1000, int((LOG_CHARACTERS - size) * len(chunks) / max(1, size)))
            )
        rows = await rt.activity.newest(self.number, buffer.activity_cursor, LINES)
        entries = [*chunks, *(row for row in rows if buffer.run in (None, row.run))]
        entries.sort(key=lambda entry: (entry.run, entry.created_at))
        first = entries.index(chunks[0]) if gap else 0
        buffer.know(runs)
        buffer.add(entries[first:], gap=gap)
        buffer.end_runs(max((run.ordinal for run in runs if run.finished_at), default=0))

    async def _read_patch(self, rt: Runtime, snapshot: JobSnapshot) -> JobSnapshot:
        newest = await rt.changes.patch(self.number)
        if newest is None:
            self._patch = None
            return replace(snapshot, patch=None)
        if self._patch == (newest.id, newest.sha256):
            return snapshot
        data = await rt.checkpoints.content(newest, most=PATCH_MEBIBYTES)
        self._patch = newest.id, newest.sha256
        text = data.decode("utf-8", "replace")
        return replace(snapshot, patch=JobPatch(text, newest.size, cut=len(data) < newest.size))


def _is_significant(event: Event) -> bool:
    """Return whether an event may have changed more than the event list."""
    return event.to_status is not None or not event.actor.startswith("worker:")


def _add_events(snapshot: JobSnapshot, new_events: Sequence[Event]) -> JobSnapshot:
    """Append events, and keep the newest."""
    details = snapshot.details
    events = (*details.events, *new_events)
    has_earlier = details.has_earlier_events or len(events) > EVENTS
    newest = replace(details, events=events[-EVENTS:], has_earlier_events=has_earlier)
    return replace(snapshot, details=newest)
