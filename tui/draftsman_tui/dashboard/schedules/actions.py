"""Actions on schedules and templates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from draftsman.actions import schedules as actions
from draftsman.formats import times
from draftsman_tui.dashboard.command import CommandGroup, dashboard_command
from draftsman_tui.dashboard.dialogs.simple_dialogs import TextDialog
from draftsman_tui.dashboard.frame.perform import act, call_of, row_command
from draftsman_tui.dashboard.schedules.parameters_dialog import ParametersDialog
from draftsman_tui.terminal.results import result_text

if TYPE_CHECKING:
    from draftsman.actions.action import ActionResult
    from draftsman.jobs.requests.service.submissions import SubmittedJob
    from draftsman.schedules.schedule import Schedule
    from draftsman.schedules.template import Template
    from draftsman_tui.dashboard.tables.screen import MainScreen


HISTORY = 100
"""Occurrences that the dialog lists."""


@dashboard_command(
    "pause-schedule",
    CommandGroup.SCHEDULES,
    does=(actions.pause, actions.resume),
    keys="p",
    on={"schedules"},
    footer=True,
)
async def toggle_schedule(screen: MainScreen, text: str) -> None:
    """Pause the schedule, or resume it.

    `text` is the reason of a pause.
    """
    schedule: Schedule = screen.chosen("schedule")
    action = actions.pause if schedule.paused_at is None else actions.resume
    await act(screen, action, schedule.name, text)


row_command(
    "run-schedule",
    CommandGroup.SCHEDULES,
    actions.run,
    on={"schedules"},
    row=lambda schedule: schedule.name,
    keys="r",
    footer=True,
)
row_command(
    "remove-schedule",
    CommandGroup.SCHEDULES,
    actions.remove,
    on={"schedules"},
    row=lambda schedule: schedule.name,
)


@dashboard_command("history", CommandGroup.SCHEDULES, keys="h", on={"schedules"}, footer=True)
async def show_history(screen: MainScreen, text: str) -> None:
    """Show the occurrences of the schedule."""
    schedule: Schedule = screen.chosen("schedule")
    upcoming = await screen.rt.schedules.upcoming(schedule.name, 5)
    lines = [f"{times.in_zone(at, schedule.timezone)}  next" for at in reversed(upcoming)]
    for fire in await screen.rt.schedules.history(schedule.name, HISTORY):
        job = f" D-{fire.job}" if fire.job else ""
        reason = f": {fire.reason}" if fire.reason else ""
        at = times.in_zone(fire.due_at, fire.timezone)
        lines.append(f"{at}  {fire.status}{job}{reason}")
    title = f"{schedule.name} ({schedule.timezone})"
    await screen.app.push_screen(TextDialog(title, "\n".join(lines) or "no occurrences"))


@dashboard_command(
    "run-template",
    CommandGroup.TEMPLATES,
    does=actions.run_template,
    keys="r",
    on={"templates"},
    takes="",
    footer=True,
)
async def run_template(screen: MainScreen, text: str) -> None:
    """Submit a job from the template.

    A form asks for its parameters.
    """
    template: Template = screen.chosen("template")
    name = f"{template.name}@{template.version}"

    async def submit(parameters: dict[str, Any]) -> ActionResult[SubmittedJob]:
        return await actions.run_template(call_of(screen), name, parameters)

    inputs = await screen.rt.templates.inputs(template)
    if inputs.properties:
        dialog = ParametersDialog(f"Run {template.name}", inputs, submit)
        result = await screen.ask(dialog)
        if result is not None:
            screen.show_message(result_text(result))
    else:
        result = await act(screen, actions.run_template, name, parameters={})
    if result is not None:
        screen.show_job_row(result.value.number)


row_command(
    "remove-template",
    CommandGroup.TEMPLATES,
    actions.remove_template,
    on={"templates"},
    row=lambda template: template.name,
)
