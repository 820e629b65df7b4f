"""Settings of the dashboard and of the web inbox."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from draftsman.settings.section import Section


class DashboardSettings(Section):
    """Defaults of `draftsman dashboard`; its options override them."""

    theme: Literal["dark", "light", "contrast", "none"] | None = None
    """Color theme; None: the last selected theme, initially dark."""
    view: str | None = Field(None, min_length=1, max_length=40)
    """Initial table or saved view; None: jobs."""
    alerts: tuple[Literal["bell", "notification", "title"], ...] = (
        "bell",
        "notification",
        "title",
    )
    """How the terminal alerts to questions for the user; empty: not at all."""
    undo: float = Field(5.0, ge=0, le=60)
    """Seconds in which an answer, a decision or a cancel can be undone; 0: it counts at once."""
    keys: dict[str, str] = Field(default_factory=dict)
    """Keys by command; the dashboard validates them."""
