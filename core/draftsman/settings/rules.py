"""Permission rules."""

from __future__ import annotations

from pydantic import Field

from draftsman.settings.section import Section


class RuleSettings(Section):
    """Permission rules (docs/rules.md) allow commands of agents that people always allowed."""

    propose_after: int = Field(5, ge=0, le=1000)
    """Equal decisions of people after which draftsman proposes a rule, which a person has to
    ratify; 0: never."""
    expires_in: float = Field(2_592_000, gt=0, le=366 * 86_400)
    """Seconds after which a rule expires; the person who ratifies it can choose others."""
    notify: str | None = Field(None, examples=["slack:C012ABCDEF"])
    """Target of a message about each proposed rule, in Slack with buttons for operators; unset: no
    message."""
