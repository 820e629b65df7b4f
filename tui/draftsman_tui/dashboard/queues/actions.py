"""Commands of queues: pause, resume, end of a reservation, and the order of queued jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from draftsman.actions import jobs, queues
from draftsman.ids import job_name
from draftsman_tui.dashboard.command import ORDERED, CommandGroup, dashboard_command
from draftsman_tui.dashboard.dialogs.simple_dialogs import ChoiceDialog, PromptDialog
from draftsman_tui.dashboard.frame.perform import act, job_command, row_command

if TYPE_CHECKING:
    from draftsman_tui.dashboard.frame.base_screen import BaseScreen

QUEUES: Final = {"queues"}
for _name, _action, _keys in (
    ("pause", queues.pause, "p"),
    ("unpause", queues.resume, "U"),
    ("unreserve", queues.release, ""),
):
    row_command(
        _name,
        CommandGroup.ADMINISTRATION,
        _action,
        on=QUEUES,
        row=lambda queue: queue.name,
        keys=_keys,
        footer=bool(_keys),
    )


@dashboard_command("move", CommandGroup.JOBS, does=jobs.move, keys="M", on=ORDERED)
async def move(screen: BaseScreen, text: str) -> None:
    """Move a queued job in its queue.

    `text` is `top`, `bottom`, `before D-2` or `after D-2`.
    """
    number = screen.job()
    if not text:
        choices = [
            ("to the top of its queue", "top"),
            ("to the bottom of its queue", "bottom"),
            ("before another job …", "before"),
            ("after another job …", "after"),
        ]
        text = await screen.ask(ChoiceDialog(f"Move {job_name(number)}?", choices)) or ""
        if text in jobs.SIDES:
            other = await screen.ask(PromptDialog(f"Move {job_name(number)} {text} which job?", ""))
            text = f"{text} {other}" if other else ""
    if text:
        await act(screen, jobs.move, number, text)


job_command("priority", jobs.priority, keys="P", on=ORDERED)
