"""How the dashboard looks."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from draftsman.settings.tables import Section


class DashboardSettings(Section):
    """What `draftsman dashboard` begins with; its options win."""

    theme: Literal["dark", "light", "contrast", "none"] | None = None
    """Its colours; None: those chosen last, at first dark."""
    view: str | None = Field(None, min_length=1, max_length=40)
    """The table, or the saved view, that comes first; None: jobs."""
    keys: dict[str, str] = Field(default_factory=dict)
    """Keys by the names of commands; the dashboard checks them, which knows both."""
