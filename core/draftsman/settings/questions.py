"""Questions and approvals, and the permission rules that answer some of them."""

from __future__ import annotations

from typing import Any

from pydantic import Field, model_validator

from draftsman.settings.hours import Hours, LadderChoice, WorkingHours, Zone
from draftsman.settings.section import Section


class QuestionSettings(Section):
    """Defaults of questions and approvals (docs/questions.md)."""

    expires_in: float | None = Field(86_400, gt=0)
    """Seconds until a question expires; 0 is never."""
    self_approval: bool = False
    """Whether the requester of a job may approve it. On the embedded database the owner of the data
    always may, and the approval is marked."""
    undo: float = Field(10.0, ge=0, le=60)
    """Seconds in which an answer or a decision of a person on a terminal, in the dashboard or in
    the web inbox can be undone, before it counts; also a cancel of the dashboard. 0: it counts at
    once, as those of chats and programs do."""
    ask_grace: float = Field(20, ge=0, le=300)
    """Seconds for which an agent is kept running for the answer to its question, and keeps its
    slot, before it parks; at most half of the lease of workers. 0: never."""
    escalate_to: str | None = Field(None, min_length=1, examples=["maintainers"])
    """Default group or person for questions that escalate. Unset: each question must have its
    own."""
    quiet_hours: Hours | None = Field(None, examples=["22:00-07:00"])
    """Default quiet hours: no questions or reminders interrupt people. Unset: none."""
    working_hours: WorkingHours | None = Field(None, examples=["Mon-Fri 09:00-17:00"])
    """Default working hours, outside of which nothing interrupts people. Unset: at any time."""
    holidays: str | None = Field(None, min_length=1, examples=["berlin"])
    """Default table of [holidays]: days without working hours. Unset: none."""
    timezone: Zone = "UTC"
    """Default time zone of people, and of messages to several; a name of the IANA database."""
    ladders: LadderChoice = Field(
        {}, examples=[{"input": "default", "approval": "default", "critical": "urgent"}]
    )
    """Ladder of each kind of question: input, approval, or critical (docs/attention-ladder.md). A
    profile of a repository may have others; "none": no ladder."""

    @model_validator(mode="before")
    @classmethod
    def _zero_is_never(cls, data: Any) -> Any:
        if isinstance(data, dict) and data.get("expires_in") in (0, "0"):
            return {**data, "expires_in": None}
        return data


class RuleSettings(Section):
    """Permission rules (docs/rules.md) allow commands of agents that people always allowed."""

    propose_after: int = Field(5, ge=0, le=1000)
    """Equal decisions of people after which draftsman proposes a rule, which a person has to
    ratify; 0: never."""
    expires_in: float = Field(2_592_000, gt=0, le=366 * 86_400)
    """Seconds after which a rule expires; the person who ratifies it can choose others."""
    notify: str | None = Field(None, examples=["slack:C012ABCDEF"])
    """Target of a message about each proposed rule, in a chat with buttons for operators; unset:
    no message."""
