"""Messages of people to jobs. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from draftsman.channels import ChannelName
from draftsman.errors import UsageError
from draftsman.ids import job_name
from draftsman.jobs.job import Status
from draftsman.text import clean

MAX_TEXT: Final = 10_000
"""Maximum characters of a message; the constraint of the table has the same."""
MAX_MESSAGES: Final = 200
"""Maximum messages of a job; the constraint of the table has the same."""


@dataclass(frozen=True, slots=True)
class JobMessage:
    """A message of a person to a job: a row of `job_messages`."""

    job: int
    ordinal: int
    source: ChannelName
    sender: str
    sender_display_name: str | None
    text: str
    run: int | None
    """The run whose agent was last given it."""
    created_at: datetime
    delivered_at: datetime | None
    """When a run stored a checkpoint that has it, or ended its job with it."""


@dataclass(frozen=True, slots=True)
class SentMessage:
    """The result of sending a message: `status` is that of its job."""

    number: int
    message: int
    status: Status
    created: bool
    """False if the same event was sent before."""
    follow_up: str | None = None
    """The pull request on which a job that has finished is followed up; it has no number then."""
    review: str | None = None
    """The approval of its work of which it requests changes: `D-142/2`."""

    @property
    def when(self) -> str:
        """When the agent gets it, as the end of a sentence."""
        if self.status is Status.RUNNING:
            return "the agent gets it between two turns, or with its next run"
        return "the agent gets it with its next run"

    @property
    def subject(self) -> str:
        """What `says` is said of."""
        return f"message {self.message}" if self.follow_up is None else job_name(self.number)

    @property
    def says(self) -> str:
        """What became of the message."""
        if self.follow_up is not None:
            return f"has finished; a follow-up on {self.follow_up} gets it"
        if self.review is not None:
            name = job_name(self.number)
            return f"sent to {name}: changes of {self.review} are requested, and {self.when}"
        return f"sent to {job_name(self.number)}: {self.when}"

    def __str__(self) -> str:
        return f"{self.subject} {self.says}"


def check_text(text: str) -> str:
    """Return the text of a message without control characters; raises UsageError."""
    text = clean(text).strip()
    if not text:
        raise UsageError("the message is empty; write what the agent should know")
    if len(text) > MAX_TEXT:
        raise UsageError(
            f"the message has {len(text):,} characters; the maximum is {MAX_TEXT:,}: shorten it"
        )
    return text
