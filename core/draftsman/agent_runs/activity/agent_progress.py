"""Progress of an agent in a line: its plan and its newest activity. Pure."""

from __future__ import annotations

from typing import Final

from draftsman.agent_runs.activity.activity_text import activity_text, plan_text
from draftsman.agent_runs.activity.stream import Activity, ActivityKind, ActivityRow
from draftsman.text import first_line

WIDTH: Final = 120
"""Maximum characters of a line."""
SHOWN: Final = frozenset({ActivityKind.MESSAGE, ActivityKind.TOOL, ActivityKind.FILE})
"""Kinds that the line may show; thoughts are in the log only."""


class AgentProgress:
    """The newest plan and the newest line of a run."""

    def __init__(self) -> None:
        self.plan = ""
        self.line = ""

    def add(self, row: Activity | ActivityRow) -> None:
        """Follow a row."""
        if row.kind == ActivityKind.PLAN:
            self.plan = first_line(plan_text(row.detail.get("entries")), WIDTH)
        elif row.kind in SHOWN and (line := _last_line(activity_text(row))):
            self.line = line

    @property
    def text(self) -> str:
        """Plan and line: `3 of 7 steps: write tests · [runs] execute: npm test`."""
        return " · ".join(part for part in (self.plan, self.line) if part)


def _last_line(text: str) -> str:
    return first_line("\n".join(reversed(text.splitlines())), WIDTH)
