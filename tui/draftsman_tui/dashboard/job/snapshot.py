"""One job as it was seen: a value that nobody changes, of which everything is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from draftsman.domain.job import TERMINAL
from draftsman.domain.question import Question, QuestionStatus
from draftsman_tui.dashboard.job.log_buffer import LogView
from draftsman_tui.dashboard.polling.messages import LatestMessage

if TYPE_CHECKING:
    from draftsman.domain.answer import Answer
    from draftsman.domain.event import Event
    from draftsman.domain.job import Job
    from draftsman.domain.messages.delivery import Delivery
    from draftsman.domain.run import Run
    from draftsman.domain.wait_reason import WaitReason
    from draftsman.services.jobs.read_model import RetryLink


@dataclass(frozen=True, slots=True)
class JobPatch:
    """The changes that a job made, or their beginning; `size` is of the whole, in bytes."""

    text: str
    size: int
    cut: bool = False


@dataclass(frozen=True, slots=True)
class JobSnapshot:
    """A job and all around it. What is None was not looked at, because it is not in view."""

    job: Job
    at: datetime
    """When it was looked at, by the database's clock."""
    why: WaitReason | None = None
    """What it waits for; None: it is over."""
    events: Sequence[Event] = ()
    earlier: bool = False
    """Whether there are events before these."""
    archived: Sequence[Any] = ()
    """Months of its trail that left the database."""
    runs: Sequence[Run] = ()
    questions: Sequence[Question] = ()
    answers: Sequence[Answer] = ()
    asked: Mapping[int, str] = field(default_factory=dict)
    """Who may answer an open question, in words, by its ordinal."""
    deliveries: Sequence[Delivery] = ()
    targets: Sequence[Any] = ()
    files: Sequence[Any] = ()
    chain: Sequence[RetryLink] = ()
    log: LogView | None = None
    patch: JobPatch | None = None
    logs_kept: int | None = None
    """Months for which a log is kept after the end of its job; None: for ever."""

    @property
    def over(self) -> bool:
        """Whether nothing follows."""
        return self.job.status in TERMINAL

    @property
    def open(self) -> Question | None:
        """The question that is open."""
        return next((one for one in self.questions if one.status is QuestionStatus.OPEN), None)


class JobLoaded(LatestMessage):
    """A job was looked at."""

    def __init__(self, seen: JobSnapshot) -> None:
        super().__init__()
        self.seen = seen
