"""A thread in chat that shows a run while it works, and the progress that it shows. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final, Self
from uuid import UUID

from draftsman.agent_runs.activity.activity import (
    ActivityKind,
    ActivityRow,
    ActivityState,
    AgentProgress,
)
from draftsman.ids import job_name
from draftsman.jobs.job import Status

STATUS_LIFE: Final = timedelta(minutes=2)
"""How long a thread shows a status that is not renewed."""
CARD_INTERVAL: Final = 60.0
"""Seconds between two edits of the status message beside an open stream, for its other readers."""


class StreamState(StrEnum):
    """State of the stream of a run; a run has a single stream."""

    NONE = "none"
    STARTING = "starting"
    OPEN = "open"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class LiveThread:
    """A thread and its run, as claimed by a process."""

    thread_key: str
    job: int
    run: int
    """The run that it shows."""
    stream: StreamState
    stream_ref: str | None
    started_at: datetime | None
    """When its stream was started."""
    shown: dict[str, Any]
    """Title and state of each step that the stream shows."""
    status_text: str
    status_at: datetime | None
    quiet: bool
    """Whether the channel refused the status of this thread."""
    session: str
    """State of the session that the channel shows in the thread; "" without one."""
    added_at: datetime
    token: UUID
    target: str
    thread: str | None
    """The target's own thread."""
    root: str | None
    """Reference of the job's status message at this target."""
    title: str
    invoker_id: str
    job_status: Status
    job_version: int
    current_run: int
    messages_at: datetime | None
    """When the newest message of the job in this thread was sent, which removes the status."""
    now: datetime

    @property
    def name(self) -> str:
        """Display name of the job: `D-142`."""
        return job_name(self.job)

    @property
    def is_running(self) -> bool:
        """Whether the run works."""
        return self.job_status is Status.RUNNING and self.run == self.current_run

    @property
    def has_status(self) -> bool:
        """Whether the thread may show a status."""
        is_recent = self.status_at is not None and self.now - self.status_at < STATUS_LIFE
        return bool(self.status_text) and is_recent

    @property
    def is_status_removed(self) -> bool:
        """Whether a message was posted after the status was set."""
        posts = (self.messages_at, self.started_at)
        return any(self.status_at is None or post >= self.status_at for post in posts if post)

    def age(self, since: datetime | None) -> float:
        """Return the seconds since a time; infinite for None."""
        return float("inf") if since is None else (self.now - since).total_seconds()

    def with_status(self, text: str) -> Self:
        """Return it with a status that was set now."""
        return replace(self, status_text=text, status_at=self.now)

    def closed(self) -> Self:
        """Return it without its stream, which is not started again in this run."""
        return replace(
            self,
            stream=StreamState.CLOSED,
            stream_ref=None,
            started_at=self.started_at or self.now,
            shown={},
        )

    def next_run(self) -> Self:
        """Return it for the current run of the job."""
        return replace(
            self,
            run=self.current_run,
            stream=StreamState.NONE,
            stream_ref=None,
            started_at=None,
            shown={},
            status_text="",
            status_at=None,
            quiet=False,
            added_at=self.now,
        )


class LiveProgress:
    """The plan of an agent or the steps of a handler, and the newest line."""

    def __init__(self) -> None:
        self._plan: list[tuple[str, str]] = []
        self._steps: list[tuple[str, str]] = []
        self._progress = AgentProgress()

    @property
    def steps(self) -> list[tuple[str, str]]:
        """Text and state of each step: those of the plan, where there is one."""
        return self._plan or self._steps

    @property
    def plan(self) -> str:
        """The plan in a line: `3 of 7 steps: write tests`."""
        return self._progress.plan

    @property
    def line(self) -> str:
        """The newest line of the activity."""
        return self._progress.line

    @property
    def newest(self) -> tuple[str, str]:
        """The newest line without its mark, and its state; other lines than calls are done."""
        return self._progress.title, self._progress.state or ActivityState.COMPLETED

    def __bool__(self) -> bool:
        return bool(self.steps or self.line)

    def add(self, row: ActivityRow) -> None:
        """Follow a row."""
        self._progress.add(row)
        if row.kind == ActivityKind.PLAN:
            entries = row.detail.get("entries")
            self._plan = [
                (str(entry.get("text") or ""), str(entry.get("state") or ""))
                for entry in (entries if isinstance(entries, list) else [])
                if isinstance(entry, dict)
            ]

    def add_step(self, key: str, *, done: bool) -> None:
        """Follow a step of the handler."""
        state = ActivityState.COMPLETED if done else ActivityState.RUNNING
        self._steps.append((key, state))
