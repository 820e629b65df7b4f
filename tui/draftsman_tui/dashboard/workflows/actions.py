"""Actions on groups of jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from draftsman.errors import Refused
from draftsman.formats.amounts import counted
from draftsman.people.policy import Verb
from draftsman_tui.dashboard.command import CommandGroup, dashboard_command
from draftsman_tui.dashboard.dialogs.simple_dialogs import ConfirmDialog

if TYPE_CHECKING:
    from draftsman.workflows.groups import JobGroup
    from draftsman_tui.dashboard.tables.screen import MainScreen


@dashboard_command(
    "cancel-group",
    CommandGroup.GROUPS,
    keys="c",
    on={"groups"},
    needs=Verb.CANCEL,
    takes="REASON",
    footer=True,
)
async def cancel_group(screen: MainScreen, text: str) -> None:
    """Cancel the unfinished jobs of the group."""
    group = cast("JobGroup | None", screen.table.row)
    if group is None:
        raise Refused("choose a group first")
    unfinished = group.running + group.waiting
    if not unfinished:
        raise Refused(f"all jobs of the group {group.name!r} have ended; nothing to cancel")
    jobs = counted(unfinished, "unfinished job")
    note = "Work so far is kept. Jobs that are added later are canceled at once."
    if await screen.ask(ConfirmDialog(f"Cancel {jobs} of {group.name}?", note)):
        results = await screen.rt.job_control.cancel_group(group.name, screen.actor, text or None)
        stopping = sum(result.requested for result in results)
        canceled = len(results) - stopping
        ended = f"Canceled {counted(canceled, 'job')} of {group.name}"
        screen.show_message(f"{ended}; {stopping:,} stop first" if stopping else ended)
