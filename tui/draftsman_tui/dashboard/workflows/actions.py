"""Actions on groups of jobs."""

from __future__ import annotations

from draftsman.actions import jobs
from draftsman.errors import Refused
from draftsman.formats.amounts import counted
from draftsman.workflows.groups import JobGroup
from draftsman_tui.dashboard.command import CommandGroup, dashboard_command
from draftsman_tui.dashboard.frame.perform import call_of, confirmed_about, perform
from draftsman_tui.dashboard.tables.screen import MainScreen


@dashboard_command(
    "cancel-group",
    CommandGroup.GROUPS,
    does=jobs.cancel_group,
    keys="c",
    on={"groups"},
    footer=True,
)
async def cancel_group(screen: MainScreen, text: str) -> None:
    """Cancel the unfinished jobs of the group."""
    group: JobGroup = screen.chosen("group")
    unfinished = group.running + group.waiting
    if not unfinished:
        raise Refused(f"all jobs of the group {group.name!r} have ended; nothing to cancel")
    what = f"{counted(unfinished, 'unfinished job')} of {group.name}"
    if await confirmed_about(screen, jobs.cancel_group, what):
        await perform(screen, jobs.cancel_group(call_of(screen), group.name, text))
