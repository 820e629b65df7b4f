"""Immutable snapshot of a job, from which the job screen is rendered."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from draftsman.errors import CommandHint
from draftsman.ids import account_name
from draftsman.jobs.details.job_details import JobDetails
from draftsman.jobs.details.sections.section import LineSpan, Reader
from draftsman.jobs.details.wait_reason import WaitReason
from draftsman.jobs.job import Job
from draftsman.questions.question import Question, QuestionStatus
from draftsman_tui.dashboard.frame.messages import LatestMessage
from draftsman_tui.dashboard.jobs.details.log_buffer import LogView


@dataclass(frozen=True, slots=True)
class JobPatch:
    """Diff of a job, possibly truncated; `size` is the full size in bytes."""

    text: str
    size: int
    cut: bool = False


@dataclass(frozen=True, slots=True)
class JobSnapshot:
    """A job at a time. None: not loaded, because its tab is not shown."""

    details: JobDetails
    at: datetime
    """Time of the load, by the database's clock."""
    responders: Mapping[int, LineSpan] = field(default_factory=dict)
    """Responders of the open questions, by ordinal."""
    name_of: Callable[[str], str] = account_name
    """Names the person of an account."""
    log: LogView | None = None
    doing: str = ""
    """Plan and newest activity of the agent that runs now."""
    patch: JobPatch | None = None
    hint: Callable[[CommandHint], str] = str
    """Words a command that helps: as a key or a line of the dashboard."""
    logs_kept: int | None = None
    """Months to keep the log after the job finishes; None: forever."""

    def reader(self, now: datetime) -> Reader:
        """Return the reader of its sections."""
        return Reader(now, self.responders, name_of=self.name_of, hint=self.hint)

    @property
    def job(self) -> Job:
        """The job."""
        return self.details.job

    @property
    def why(self) -> WaitReason | None:
        """Wait reason; None for a finished job."""
        return None if self.over else self.details.wait_reason

    @property
    def over(self) -> bool:
        """Whether the job is finished."""
        return self.details.is_over

    @property
    def open(self) -> Question | None:
        """The first open question."""
        return next(iter(self.open_questions), None)

    @property
    def open_questions(self) -> Sequence[Question]:
        """The questions that the job waits for, in the order asked."""
        return [
            question
            for question in self.details.questions
            if question.status is QuestionStatus.OPEN
        ]


@dataclass
class JobLoaded(LatestMessage):
    """A job was loaded."""

    snapshot: JobSnapshot
