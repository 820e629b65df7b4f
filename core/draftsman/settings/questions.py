"""Questions and approvals."""

from __future__ import annotations

from typing import Any

from pydantic import Field, model_validator

from draftsman.settings.hours import Hours, LadderChoice, WorkingHours, Zone
from draftsman.settings.section import Section


class QuestionSettings(Section):
    """Defaults of questions."""

    expires_in: float | None = Field(86_400, gt=0)
    """Seconds until a question expires; 0 in TOML: never."""
    self_approval: bool = False
    """Whether the requester of a job may approve it."""
    ask_grace: float = Field(20, ge=0, le=300)
    """Maximum seconds that an agent is kept running for the answer to its question; 0: never."""
    escalate_to: str | None = Field(None, min_length=1)
    """Default group or person to escalate questions to."""
    quiet_hours: Hours | None = None
    """Default quiet hours, without interruptions; None: no quiet hours."""
    working_hours: WorkingHours | None = None
    """Default working hours; None: at any time."""
    holidays: str | None = Field(None, min_length=1)
    """Default table of `[holidays]`; None: no holidays."""
    timezone: Zone = "UTC"
    """Default time zone of people."""
    ladders: LadderChoice = Field({})
    """Ladder of each kind of question, `input`, `approval` or `critical`."""

    @model_validator(mode="before")
    @classmethod
    def _zero_is_never(cls, data: Any) -> Any:
        if isinstance(data, dict) and data.get("expires_in") in (0, "0"):
            return {**data, "expires_in": None}
        return data
