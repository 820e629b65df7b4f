"""Permission rules."""

from __future__ import annotations

from pydantic import Field

from draftsman.settings.section import Section


class RuleSettings(Section):
    """When a permission rule is proposed, and for how long it allows commands."""

    propose_after: int = Field(5, ge=0, le=1000)
    """Equal decisions of people before a rule is proposed; 0: never, 1 counts as 2."""
    expires_in: float = Field(2_592_000, gt=0, le=366 * 86_400)
    """Seconds after which a rule expires, unless the person who ratifies it chooses others."""
    notify: str | None = None
    """Target of a message about each proposed rule: `slack:C012ABCDEF`; None: none is sent."""
