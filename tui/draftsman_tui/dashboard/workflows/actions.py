"""Commands of groups of jobs."""

from __future__ import annotations

from draftsman.actions import jobs
from draftsman_tui.dashboard.command import CommandGroup
from draftsman_tui.dashboard.frame.perform import row_command

row_command(
    "cancel-group",
    CommandGroup.GROUPS,
    jobs.cancel_group,
    on={"groups"},
    row=lambda group: group.name,
    keys="c",
    footer=True,
)
