"""Immutable snapshot of a job, from which the job screen is rendered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from draftsman.jobs.job import TERMINAL
from draftsman.questions.question import Question, QuestionStatus
from draftsman_tui.dashboard.frame.messages import LatestMessage
from draftsman_tui.dashboard.jobs.details.log_buffer import LogView

if TYPE_CHECKING:
    from draftsman.deliveries.delivery import Delivery
    from draftsman.events.event import Event
    from draftsman.jobs.details.wait_reason import WaitReason
    from draftsman.jobs.job import Job
    from draftsman.jobs.job_summary import RetryLink
    from draftsman.jobs.runs.run import Run
    from draftsman.jobs.runs.saved_data import CheckpointSummary, StepSummary
    from draftsman.questions.answer import Answer
    from draftsman.workflows.dependencies import JobTree
    from draftsman.workflows.groups import JobGroup


@dataclass(frozen=True, slots=True)
class JobPatch:
    """Diff of a job, possibly truncated; `size` is the full size in bytes."""

    text: str
    size: int
    cut: bool = False


@dataclass(frozen=True, slots=True)
class JobSnapshot:
    """A job with its related data. None: not loaded, because its tab is not shown."""

    job: Job
    at: datetime
    """Time of the load, by the database's clock."""
    why: WaitReason | None = None
    """Wait reason; None for a finished job."""
    events: Sequence[Event] = ()
    earlier: bool = False
    """Whether older events are omitted."""
    archived: Sequence[Any] = ()
    """Archived months of its events."""
    runs: Sequence[Run] = ()
    questions: Sequence[Question] = ()
    answers: Sequence[Answer] = ()
    responders: Mapping[int, str] = field(default_factory=dict)
    """Formatted responders of the open questions, by ordinal."""
    asking: Mapping[int, str] = field(default_factory=dict)
    """The jobs that an answer to a question counts for, in words; "" for a single job."""
    deliveries: Sequence[Delivery] = ()
    targets: Sequence[Any] = ()
    files: Sequence[Any] = ()
    steps: Sequence[StepSummary] = ()
    """Newest steps, newest first; read only while the tab of the runs is shown."""
    checkpoints: Sequence[CheckpointSummary] = ()
    chain: Sequence[RetryLink] = ()
    group: JobGroup | None = None
    tree: JobTree | None = None
    log: LogView | None = None
    doing: str = ""
    """Plan and newest activity of the agent that runs now."""
    patch: JobPatch | None = None
    logs_kept: int | None = None
    """Months to keep the log after the job finishes; None: forever."""

    @property
    def over(self) -> bool:
        """Whether the job is finished."""
        return self.job.status in TERMINAL

    @property
    def open(self) -> Question | None:
        """The first open question."""
        return next(iter(self.open_questions), None)

    @property
    def open_questions(self) -> Sequence[Question]:
        """The questions that the job waits for, in the order asked."""
        return [question for question in self.questions if question.status is QuestionStatus.OPEN]


class JobLoaded(LatestMessage):
    """A job was loaded."""

    def __init__(self, snapshot: JobSnapshot) -> None:
        super().__init__()
        self.snapshot = snapshot
