"""Actions on schedules and templates."""

from __future__ import annotations

from typing import Any

from draftsman.actions import schedules as actions
from draftsman.errors import Refused
from draftsman.formats import times
from draftsman.jobs.requests.service.submissions import SubmittedJob
from draftsman.schedules.schedule import Schedule
from draftsman.schedules.template import Template
from draftsman_tui.common.jobs import submitted_message
from draftsman_tui.dashboard.command import CommandGroup, dashboard_command
from draftsman_tui.dashboard.dialogs.simple_dialogs import PromptDialog, TextDialog
from draftsman_tui.dashboard.frame.perform import call_of, confirmed_about, perform, row_command
from draftsman_tui.dashboard.schedules.parameters_dialog import ParametersDialog
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
    call = call_of(screen)
    if schedule.paused_at is not None:
        await perform(screen, actions.resume(call, schedule.name))
        return
    reason = text or await screen.ask(
        PromptDialog(actions.pause.prompt.format(schedule.name), actions.pause.example)
    )
    if reason is not None:
        await perform(screen, actions.pause(call, schedule.name, reason))


@dashboard_command(
    "run-schedule",
    CommandGroup.SCHEDULES,
    does=actions.run,
    keys="r",
    on={"schedules"},
    footer=True,
)
async def run_schedule(screen: MainScreen, text: str) -> None:
    """Submit the job of the schedule now."""
    schedule: Schedule = screen.chosen("schedule")
    if await confirmed_about(screen, actions.run, schedule.name):
        result = await actions.run(call_of(screen), schedule.name)
        screen.show_message(submitted_message(result.value))


row_command(
    "remove-schedule",
    CommandGroup.SCHEDULES,
    actions.remove,
    "schedules",
    lambda schedule: schedule.name,
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
    if template.definition is None:
        raise Refused(f"template {template.name} was removed")

    async def submit(parameters: dict[str, Any]) -> SubmittedJob:
        name = f"{template.name}@{template.version}"
        return (await actions.run_template(call_of(screen), name, parameters)).value

    if template.definition.properties:
        dialog = ParametersDialog(f"Run {template.name}", template.definition, submit)
        submitted = await screen.ask(dialog)
    elif await confirmed_about(screen, actions.run_template, template.name):
        submitted = await submit({})
    else:
        return
    if submitted is not None:
        screen.show_message(submitted_message(submitted))
        screen.show_job_row(submitted.number)


row_command(
    "remove-template",
    CommandGroup.TEMPLATES,
    actions.remove_template,
    "templates",
    lambda template: template.name,
)
