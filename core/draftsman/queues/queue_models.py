"""Queues, their pauses and jobs, as services return them to front ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from draftsman.errors import UsageError
from draftsman.formats.amounts import counted
from draftsman.formats.json_data import OPTIONAL
from draftsman.formats.times import format_time
from draftsman.ids import account_name, job_name, pause_name
from draftsman.jobs.job import Status
from draftsman.metrics import DatabaseGauge
from draftsman.text import STORED_SENTENCE

MAX_PRIORITY: Final = 1000


def check_priority(priority: int) -> None:
    """Raise UsageError unless a priority is in its range."""
    if not -MAX_PRIORITY <= priority <= MAX_PRIORITY:
        raise UsageError(f"priority {priority}: allowed are -{MAX_PRIORITY} to {MAX_PRIORITY}")


@dataclass(frozen=True, slots=True)
class QueuePause:
    """A pause of a queue, or of a type in it."""

    queue: str
    type: str | None
    reason: str
    paused_by: str
    paused_at: datetime

    @property
    def name(self) -> str:
        """The text for people: `queue 'pay'` or `type 'noop' in the queue 'pay'`."""
        return pause_name(self.queue, self.type)


@dataclass(frozen=True, slots=True)
class QueueChange:
    """A pause or resume of a queue or type."""

    queue: str
    type: str | None
    action: str
    actor: str
    reason: str | None = field(metadata=STORED_SENTENCE)
    created_at: datetime


@dataclass(frozen=True, slots=True)
class UnhandledType:
    """A type of a queue that no live worker of the queue handles, although jobs of it wait.

    `jobs` are those among the first jobs of the queue; `oldest_wait` is in seconds.
    """

    queue: str
    type: str
    jobs: int
    oldest_wait: float | None

    @property
    def text(self) -> str:
        """The sentence for people."""
        waiting = counted(self.jobs, "job waits", "jobs wait")
        return f"no live worker of the queue {self.queue!r} handles {self.type!r}: {waiting}"


UNHANDLED_JOBS: Final = DatabaseGauge(
    "unhandled_jobs",
    "Queued jobs whose type no live worker of their queue handles.",
    ("queue", "type"),
)


def metrics_text(unhandled: Sequence[UnhandledType]) -> str:
    """Return the jobs of types without a worker in the text format of Prometheus."""
    samples = [({"queue": item.queue, "type": item.type}, item.jobs) for item in unhandled]
    return UNHANDLED_JOBS.render(samples)


@dataclass(frozen=True, slots=True)
class QueuedJob:
    """A job in the order of its queue."""

    queue: str
    number: int
    priority: int
    type: str
    status: Status
    title: str
    """Its title; the type of a job without a title."""
    created_at: datetime
    repo_name: str | None = field(default=None, metadata=OPTIONAL)
    hold: str | None = None
    """`key`, `limit`, `paused` or `reserved` if it cannot be claimed yet; `no_worker` or
    `unknown_type` if no live worker serves its queue or has its type."""
    held_by: str | None = None
    """The limit in which it waits for a place, such as `repo:shop`."""


@dataclass(frozen=True, slots=True)
class QueueSummary:
    """A queue in a list.

    `queued` jobs can be claimed, `held` jobs cannot. Of these, `limited` wait for places of limits,
    `keyed` for their concurrency keys, and `dependent` for parents. `oldest_wait` is in seconds.
    """

    name: str
    queued: int
    held: int
    running: int
    oldest_wait: float | None
    capped: bool
    """Whether more jobs are waiting than were counted."""
    pauses: tuple[QueuePause, ...] = ()
    limited: int = 0
    keyed: int = 0
    dependent: int = 0
    reservation: QueueReservation | None = None
    unhandled: tuple[UnhandledType, ...] = ()
    """The types whose jobs wait for a worker that handles them."""

    @property
    def pause(self) -> QueuePause | None:
        """The pause of the whole queue."""
        return next((pause for pause in self.pauses if pause.type is None), None)


# Reservations of queues for jobs.


DEFAULT_SECONDS: Final = 600.0
"""Time after which a reservation expires unless the run of its job renews it."""
MIN_SECONDS: Final = 60.0
"""Shortest time: twice the interval of heartbeats."""
MAX_SECONDS: Final = 86_400.0


@dataclass(frozen=True, slots=True)
class QueueReservation:
    """The reservation of a queue for a job: until its expiry, no other job is claimed.

    Each heartbeat of the job's run renews it for `seconds`.
    """

    queue: str
    job: int
    actor: str
    seconds: float
    reserved_at: datetime
    expires_at: datetime


def reservation_text(queue: str, job: int, actor: str, expires_at: datetime | None) -> str:
    """Return who reserved a queue, for which job, until when."""
    until = f" until {format_time(expires_at)}" if expires_at else ""
    return f"the queue {queue!r} is reserved by {account_name(actor)} for {job_name(job)}{until}"
