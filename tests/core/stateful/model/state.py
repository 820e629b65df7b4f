"""State of the model: the same nouns as the database, in plain Python, with separate rules.

Times are seconds since the beginning of an example. Jobs are known by their index in `jobs`, leases
by theirs in `leases`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

TERMINAL = {"completed", "failed", "dead_letter", "canceled", "expired"}
CLAIMABLE = {"queued", "resumed"}
WAITING = {"waiting_for_input", "waiting_for_approval"}
ARRIVAL = {
    "completed": "job_completed",
    "dead_letter": "job_dead_lettered",
    "canceled": "job_canceled",
    "expired": "job_expired",
    "failed": "job_failed",
    "claimed": "job_claimed",
    "running": "job_started",
    "retrying": "job_retrying",
    "scheduled": "job_snoozed",
    "waiting_for_input": "needs_input",
    "waiting_for_approval": "needs_approval",
}
"""The kind of event by where a job arrives; for `queued` and `resumed` by where it came from."""
DEPARTURE = {
    ("scheduled", "queued"): "job_promoted",
    ("scheduled", "resumed"): "job_woken",
    ("claimed", "queued"): "job_returned",
    ("claimed", "resumed"): "job_returned",
    ("running", "resumed"): "job_released",
    ("retrying", "queued"): "job_retried",
    ("waiting_for_input", "resumed"): "job_resumed",
    ("waiting_for_approval", "resumed"): "job_resumed",
}


class Refusal(Exception):
    """The product must refuse with the error of this name."""


@dataclass(frozen=True)
class JobRequest:
    """A request; requests with different `content` are different."""

    type: str = "noop"
    key: str | None = None
    content: int = 0
    queue: str = "one"
    priority: int = 0
    subject: str | None = None
    delay: float | None = None
    max_attempts: int = 1
    max_retries: int = 1
    on_lost: str = "retry"


@dataclass
class RecordedAnswer:
    """A stored response."""

    question: int
    event: str
    voter: str
    accepted: bool
    late: bool = False
    text: str | None = None


@dataclass
class Question:
    key: str
    kind: str
    approvers: tuple[str, ...] = ()
    quorum: int = 1
    freeform: bool = False
    on_expire: str = "expire"
    on_deny: str = "fail"
    on_changes: str = "refuse"
    text: str = ""
    asked: float = 0.0
    since: float = 0.0
    expires: float | None = None
    remind: float | None = None
    escalated: bool = False
    status: str = "open"
    outcome: str | None = None
    by: tuple[str, ...] = ()

    def timed(self, now: float) -> None:
        """Count its time from now."""
        self.since = now
        self.plan(now)

    def plan(self, now: float) -> None:
        """Set the time of the next reminder: at half and at 90 % of the question's time."""
        whole = None if self.expires is None else self.expires - self.since
        points = () if whole is None else (self.since + whole / 2, self.since + whole * 9 / 10)
        self.remind = min((point for point in points if point > now), default=None)


@dataclass
class Job:
    request: JobRequest
    invoker: str
    status: str
    priority: int
    due: float | None = None
    retry_of: int | None = None
    root: int | None = None
    chain: int = 0
    answers: dict[str, str | None] | None = None
    claimed_from: str | None = None
    lease: int | None = None
    claimed_at: float = 0.0
    beat: float = 0.0
    suspected_of: int | None = None
    """The worker that ended while it had this job and others."""
    attempts: int = 0
    retries: int = 0
    error: str | None = None
    cancel: bool = False
    result: int | None = None
    version: int = 1
    job_events: list[str] = field(default_factory=lambda: ["job_created"])
    joined: set[Any] = field(default_factory=set)
    """Keys and contents of the requests that joined it."""
    runs: list[str] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)
    responses: list[RecordedAnswer] = field(default_factory=list)
    checkpoints: list[int] = field(default_factory=list)
    steps: dict[str, int | None] = field(default_factory=dict)
    logged: set[tuple[int, int]] = field(default_factory=set)

    @property
    def open(self) -> Question | None:
        """The question that people see."""
        return next((item for item in self.questions if item.status == "open"), None)

    def move(self, to: str) -> None:
        """Change the status, and add its event."""
        assert self.status not in TERMINAL
        kind = DEPARTURE[self.status, to] if to in CLAIMABLE else ARRIVAL[to]
        if self.status == "running" and to not in ("running", "claimed"):
            assert self.runs[-1] != "running", "the end of a run has an outcome"
        self.status = to
        self.version = self.version + 1
        self.job_events.append(kind)
        if to not in ("claimed", "running"):
            self.lease = None
        if to != "claimed":
            self.claimed_from = None


@dataclass
class Lease:
    """A claim of a job by a worker; its index in the list stands for the token."""

    worker: int
    job: int
    run: int | None = None
    """The place of its run among those of the job; None before it starts."""


@dataclass
class Worker:
    """A worker's row; a worker on another host is known by its session lock alone."""

    here: bool
    registered: bool = True
    beat: float = 0.0
    unlocked: float | None = None


@dataclass
class Token:
    """A single-use approval token."""

    job: int
    question: int
    approver: str
    used: bool = False
    replaced: bool = False


@dataclass
class State:
    """All of it, at `now`."""

    now: float = 0.0
    jobs: list[Job] = field(default_factory=list)
    leases: list[Lease] = field(default_factory=list)
    workers: list[Worker] = field(default_factory=list)
    tokens: list[Token] = field(default_factory=list)
    leader: int | None = None
    term: int = 0
    leader_until: float = 0.0

    def owner(self, lease: int) -> Job:
        """Return the job that a lease was for."""
        return self.jobs[self.leases[lease].job]

    def holder(self, lease: int, status: str = "running") -> Job | None:
        """Return the job that this lease still holds, in this status."""
        job = self.owner(lease)
        return job if job.lease == lease and job.status == status else None

    def counts(self) -> dict[str, int]:
        """Return how many jobs are in each status that any is in."""
        by_name: dict[str, int] = {}
        for job in self.jobs:
            by_name[job.status] = by_name.get(job.status, 0) + 1
        return by_name

    def order(self, queue: str) -> list[int]:
        """Return the claimable jobs of a queue in order: by priority, then oldest."""
        places = [
            (-job.priority, place)
            for place, job in enumerate(self.jobs)
            if job.status in CLAIMABLE and job.request.queue == queue
        ]
        return [place for _, place in sorted(places)]

    def asked(self) -> list[tuple[int, int]]:
        """Return open questions as (job, ordinal), those that expire soonest first."""
        places = [
            (item.expires is None, item.expires or 0.0, place, ordinal)
            for place, job in enumerate(self.jobs)
            for ordinal, item in enumerate(job.questions, 1)
            if item.status == "open"
        ]
        return [(place, ordinal) for *_, place, ordinal in sorted(places)]


def facts(job: Job) -> dict[str, Any]:
    """Return the database's data of a job, under the names of `world.LOOK`."""
    return {
        "status": job.status,
        "version": job.version,
        "claimed_from": job.claimed_from,
        "run_count": len(job.runs),
        "attempts": job.attempts,
        "retry_count": job.retries,
        "error_class": job.error,
        "canceled": job.cancel,
        "result": job.result,
        "due": job.due if job.status in ("scheduled", "retrying") else None,
        "retry_of": job.retry_of,
        "answers": job.answers,
        "job_events": job.job_events,
        "runs": job.runs,
        "beat": job.beat if job.status == "running" else None,
        "questions": [_question(item) for item in job.questions],
        "responses": [[item.question, item.voter, item.accepted] for item in job.responses],
        "checkpoints": job.checkpoints,
        "steps": job.steps,
        "logs": len(job.logged),
    }


def _question(item: Question) -> list[Any]:
    remind = item.remind if item.status == "open" else None
    return [item.key, item.status, item.outcome, item.expires, remind, item.escalated]
