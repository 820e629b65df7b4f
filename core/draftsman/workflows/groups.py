"""Job groups: their requests, members and states."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final

from draftsman.errors import Refused
from draftsman.ids import job_name
from draftsman.jobs.job import GroupKind, OnFailure, Status
from draftsman.jobs.status_display import Meaning
from draftsman.text import STORED_SENTENCE


class GroupState(StrEnum):
    """The state of a group, derived from its jobs."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELED = "canceled"


MEANINGS: Final[Mapping[GroupState, Meaning]] = {
    GroupState.RUNNING: Meaning.ACTIVE,
    GroupState.SUCCEEDED: Meaning.SUCCESS,
    GroupState.FAILED: Meaning.FAILURE,
    GroupState.CANCELED: Meaning.NEUTRAL,
}


@dataclass(frozen=True, slots=True)
class JobGroup:
    """A group with the numbers of its jobs; of a retried job the newest retry counts."""

    id: int
    name: str
    kind: GroupKind
    on_failure: OnFailure
    created_by: str
    created_at: datetime
    canceled_at: datetime | None
    canceled_by: str | None
    cancel_reason: str | None
    total: int
    succeeded: int
    running: int
    waiting: int
    failed: int
    canceled: int
    invokers: list[str]
    """The people who submitted its unfinished jobs."""

    @property
    def state(self) -> GroupState:
        """The state: running until all jobs have ended."""
        if self.running or self.waiting:
            return GroupState.RUNNING
        if self.succeeded == self.total:
            return GroupState.SUCCEEDED
        return GroupState.FAILED if self.canceled_at is None else GroupState.CANCELED

    @property
    def progress(self) -> str:
        """The progress, such as `3 of 7 succeeded, 1 running, 3 waiting`."""
        counts = {
            "running": self.running,
            "waiting": self.waiting,
            "failed": self.failed,
            "canceled": self.canceled,
        }
        unsuccessful = [f"{count:,} {name}" for name, count in counts.items() if count]
        return ", ".join([self.succeeded_text, *unsuccessful])

    @property
    def succeeded_text(self) -> str:
        """The number of jobs that succeeded, such as `3 of 7 succeeded`."""
        return f"{self.succeeded:,} of {self.total:,} succeeded"


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A job of a group."""

    ordinal: int
    number: int
    status: Status
    type: str
    title: str | None
    reason: str | None = field(metadata=STORED_SENTENCE)
    """Why it was canceled."""
    error: str | None = field(metadata=STORED_SENTENCE)
    skipped_by: int | None
    """The job whose end canceled it before its start, in a parallel group."""
    finished_at: datetime | None

    @property
    def name(self) -> str:
        """The display name, such as `D-142`."""
        return job_name(self.number)


def group_ended(name: str) -> Refused:
    """Return the refusal of the cancel of a group."""
    return Refused(f"all jobs of the group {name!r} have ended; nothing to cancel")
