"""Everything that people see of a job, except its logs, its changes and its activity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from draftsman.jobs.job import FAILURES, TERMINAL
from draftsman.jobs.retries import ErrorClass
from draftsman.questions.question import asking_text

if TYPE_CHECKING:
    from draftsman.attention.attention import QuestionAttention
    from draftsman.deliveries.delivery import Delivery, UnservedTarget
    from draftsman.deliveries.target import TargetRow
    from draftsman.events.archive import JobArchive
    from draftsman.events.event import Event
    from draftsman.forges.follow_up import Family
    from draftsman.jobs.control.job_message import JobMessage
    from draftsman.jobs.details.wait_reason import WaitReason
    from draftsman.jobs.job import Job
    from draftsman.jobs.job_summary import JobVersion, Replacement, RetryLink
    from draftsman.jobs.requests.attachments import JobAttachment
    from draftsman.jobs.runs.run import Run
    from draftsman.jobs.runs.saved_data import Artifact, CheckpointSummary, StepSummary
    from draftsman.questions.answer import Answer
    from draftsman.questions.question import OpenQuestion, Question
    from draftsman.schedules.schedule import Fire
    from draftsman.workflows.dependencies import JobTree
    from draftsman.workflows.groups import JobGroup

SANDBOX: Final = "sandbox_applied"
"""Event kind that records the sandbox of a run."""
INCOMPLETE: Final = "clone_incomplete"
"""Event kind that records the parts of its repository without which a job works."""
JOINED: Final = "request_joined"
"""Event kind of a request that joined a live job with the same subject."""
MAX_STEPS: Final = 20
"""Newest steps that people see."""


@dataclass(frozen=True, slots=True)
class JobDetails:
    """A job with its parts, which were read at the same time."""

    job: Job
    at: datetime
    """The time, by the clock of the database."""
    version: JobVersion
    wait_reason: WaitReason
    runs: Sequence[Run]
    questions: Sequence[Question]
    answers: Sequence[Answer]
    open_questions: Sequence[OpenQuestion]
    """The open questions again, with the jobs that ask the same."""
    attention: Mapping[tuple[int, int], QuestionAttention]
    """Notifications and delays of the open questions."""
    artifacts: Sequence[Artifact]
    steps: Sequence[StepSummary]
    """The newest steps, newest first."""
    checkpoints: Sequence[CheckpointSummary]
    retry_chain: Sequence[RetryLink]
    """The jobs that it retries, the job itself, and its retries."""
    replacement: Replacement
    archives: Sequence[JobArchive]
    """The archived months of its events."""
    occurrence: Fire | None
    """The occurrence of a schedule that submitted it."""
    tree: JobTree
    """Its parents, its spawner, and the jobs that wait for it or that it spawned, if any."""
    group: JobGroup | None
    messages: Sequence[JobMessage]
    attachments: Sequence[JobAttachment]
    family: Family | None
    """Its pull request, with the jobs that follow up on it."""
    targets: Sequence[TargetRow]
    deliveries: Sequence[Delivery]
    """The newest deliveries, newest first."""
    unserved: Sequence[UnservedTarget]
    """Targets of any job that no process sends to, if one of its deliveries is due."""
    events: Sequence[Event]
    """The newest events, oldest first."""
    has_earlier_events: bool
    earlier_events: Sequence[Event]
    """Of the events before those, what `sandbox`, `works_without` and `joined_requests` need,
    oldest first."""

    @property
    def is_over(self) -> bool:
        """Whether the job has ended."""
        return self.job.status in TERMINAL

    @property
    def failure_open(self) -> bool:
        """Whether its failure needs a person: neither retried, nor dismissed, nor a denial."""
        return (
            self.job.status in FAILURES
            and self.job.error_class != ErrorClass.DENIED
            and self.wait_reason.dismissal is None
            and self.wait_reason.retried_as is None
        )

    @property
    def sandbox(self) -> dict[str, Any] | None:
        """The sandbox of the newest run."""
        return self._newest(SANDBOX)

    @property
    def works_without(self) -> dict[str, Any] | None:
        """The parts of its repository that its clones do not have."""
        return self._newest(INCOMPLETE)

    def _newest(self, kind: str) -> dict[str, Any] | None:
        events = (*self.earlier_events, *self.events)
        return next((event.payload for event in reversed(events) if event.kind == kind), None)

    @property
    def joined_requests(self) -> Sequence[Event]:
        """The events of requests that joined the job."""
        events = (*self.earlier_events, *self.events)
        return [event for event in events if event.kind == JOINED]

    @property
    def asking(self) -> Mapping[int, str]:
        """The jobs that an answer to an open question counts for, in words."""
        return {
            question.ordinal: asking_text(self.job.number, question.others)
            for question in self.open_questions
        }
