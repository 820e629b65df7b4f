"""The facts of a job that a message states."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from draftsman.deliveries.delivery import DeliveryKind, DeliveryStatus
from draftsman.formats.amounts import counted
from draftsman.ids import job_name
from draftsman.jobs.job import RequestSummary, Status
from draftsman.jobs.status_display import STATUSES
from draftsman.text import STORED_SENTENCE


@dataclass(frozen=True, slots=True)
class MessageFacts:
    """Data for a message: its job, the copy it rewrites, and the first message."""

    number: int
    job_id: UUID
    type: str
    status: str
    title: str
    url: str | None
    request: RequestSummary | None
    """What an agent is asked to do; None for other jobs."""
    group_name: str | None
    invoker_id: str
    invoker_display_name: str | None
    next_retry_at: datetime | None
    last_error: str | None = field(metadata=STORED_SENTENCE)
    error_class: str | None
    cancel_requested_by: str | None
    cancel_reason: str | None = field(metadata=STORED_SENTENCE)
    denial: dict[str, Any] | None
    """The resolution of the question whose denial failed the job."""
    result: dict[str, Any] | None
    usage: dict[str, Any] | None
    """Tokens, and their cost in US dollars, of all runs, and the commands that rules allowed."""
    created_at: datetime
    finished_at: datetime | None
    copy_id: UUID | None
    copy_status: DeliveryStatus | None
    copy_in_doubt: bool | None
    copy_kind: DeliveryKind | None
    copy_ref: str | None
    copy_created_at: datetime | None
    ended_pull: str | None
    """How the pull request of the job ended: `merged` or `closed`; None: it has not."""
    root: str | None
    paused_by: str | None
    pause_reason: str | None
    """Reason of the pause of the job; None: not paused."""
    failure_open: bool
    dismissed_by: str | None
    dismissal_reason: str | None
    replacement_target: str | None
    """Replacement of a target that no longer exists."""
    now: datetime
    """The database's time."""
    ladder: str | None
    """Name of the ladder of its question."""
    delegated_to: str | None
    """The person to whom its question is delegated now."""
    delegated_by: str | None
    delegated_until: datetime | None
    digested: list[str]
    """The people who have its question in a digest."""
    approved_by: list[str]
    """The people who approved so far, of an open approval that needs several."""
    asks_with: str | None
    """Name of the identical question that this target shows instead of the question of its job."""


@dataclass(frozen=True, slots=True)
class GroupStop:
    """How a group stopped; `reporter` is the job that reports it in the target of a delivery."""

    job: int
    status: Status
    skipped: int
    reporter: int | None

    def text(self, group: str) -> str:
        """Return `group release stopped: D-2 failed, 3 jobs skipped`."""
        cause = f"{job_name(self.job)} {STATUSES[self.status].predicate}"
        return f"group {group} stopped: {cause}, {counted(self.skipped, 'job')} skipped"
