"""Pending decisions: answers, decisions and cancels that can still be undone. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from draftsman.channels import ChannelName
from draftsman.errors import UsageError
from draftsman.ids import job_name, question_name
from draftsman.jobs.job_summary import HeldDecision
from draftsman.people.actor import Actor

if TYPE_CHECKING:
    from draftsman.questions.response import Response

MAX_WINDOW: Final = 60.0
"""Longest undo window, in seconds; the constraint of the table has the same."""


@dataclass(frozen=True, slots=True)
class PendingDecision:
    """A row of `pending_decisions`: without a question, the cancel of the job.

    `decision` has the fields of a response and `only`, or `force` and `reason` of a cancel.
    """

    id: int
    job: int
    question: int | None
    source: ChannelName
    source_event_id: str
    actor_id: str
    actor_display_name: str
    voter: str
    is_owner: bool
    decision: dict[str, Any]
    applies_at: datetime

    @property
    def name(self) -> str:
        """Name of the question, or of the job: `D-142/2`, `D-142`."""
        if self.question is None:
            return job_name(self.job)
        return question_name(self.job, self.question)

    @property
    def held(self) -> HeldDecision:
        """What lists show of it."""
        verb = "answered" if self.decision.get("decision") is None else "decided"
        return HeldDecision(
            "canceled" if self.question is None else verb, self.voter, self.applies_at
        )

    @property
    def actor(self) -> Actor:
        """The account that decided, without its person and roles."""
        return Actor(self.source, self.actor_id, self.actor_display_name, owner=self.is_owner)

    @property
    def response(self) -> Response:
        """The response of a decision on a question; raises UsageError for an invalid one."""
        from draftsman.questions.response import build_response

        fields = {name: value for name, value in self.decision.items() if name != "only"}
        return build_response(self.source_event_id, self.name, **fields)

    @property
    def only(self) -> bool:
        """Whether an answer leaves the identical questions of other jobs open."""
        return bool(self.decision.get("only"))

    @property
    def reason(self) -> str | None:
        """The reason of a cancel; raises UsageError for an invalid one."""
        reason = self.decision.get("reason")
        if reason is None or isinstance(reason, str):
            return reason
        raise UsageError("the reason is not a text", subject=self.name)

    @property
    def is_forced(self) -> bool:
        """Whether a cancel does not wait for the worker."""
        return bool(self.decision.get("force"))
