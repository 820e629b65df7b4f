"""Actions on schedules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from draftsman.errors import Refused
from draftsman.formats import times
from draftsman.people.policy import Verb
from draftsman_tui.common.jobs import submitted_message
from draftsman_tui.dashboard.command import CommandGroup, dashboard_command
from draftsman_tui.dashboard.dialogs.simple_dialogs import ConfirmDialog, PromptDialog, TextDialog
from draftsman_tui.dashboard.schedules.parameters_dialog import ParametersDialog

if TYPE_CHECKING:
    from draftsman.jobs.requests.service.submissions import SubmittedJob
    from draftsman.schedules.schedule import Schedule
    from draftsman.schedules.template import Template
    from draftsman_tui.dashboard.tables.screen import MainScreen


HISTORY = 100
"""Occurrences that the dialog lists."""


@dashboard_command(
    "pause-schedule",
    CommandGroup.SCHEDULES,
    keys="p",
    on={"schedules"},
    needs=Verb.SCHEDULES,
    takes="REASON",
    footer=True,
)
async def toggle_schedule(screen: MainScreen, text: str) -> None:
    """Pause the schedule, or resume it.

    `text` is the reason of a pause.
    """
    schedule = _schedule(screen)
    if schedule.paused_at is not None:
        await screen.rt.schedules.resume(schedule.name, screen.actor)
        screen.show_message(f"Resumed {schedule.name}")
        return
    reason = text or await screen.ask(PromptDialog(f"Pause {schedule.name}: reason?", "freeze"))
    if reason is not None:
        await screen.rt.schedules.pause(schedule.name, screen.actor, reason)
        screen.show_message(f"Paused {schedule.name}")


@dashboard_command(
    "run-schedule",
    CommandGroup.SCHEDULES,
    keys="r",
    on={"schedules"},
    needs=Verb.SUBMIT,
    footer=True,
)
async def run_schedule(screen: MainScreen, text: str) -> None:
    """Submit the job of the schedule now."""
    schedule = _schedule(screen)
    note = "Submits a job in your name, beside its occurrences."
    if await screen.ask(ConfirmDialog(f"Run {schedule.name} now?", note)):
        job = await screen.rt.schedules.run(schedule.name, screen.actor)
        screen.show_message(submitted_message(job))


@dashboard_command(
    "remove-schedule", CommandGroup.SCHEDULES, on={"schedules"}, needs=Verb.SCHEDULES
)
async def remove_schedule(screen: MainScreen, text: str) -> None:
    """Remove the schedule."""
    schedule = _schedule(screen)
    note = "Deletes its history. Its jobs are kept."
    if await screen.ask(ConfirmDialog(f"Remove schedule {schedule.name}?", note)):
        await screen.rt.schedules.remove(schedule.name, screen.actor)
        screen.show_message(f"Removed schedule {schedule.name}")


@dashboard_command("history", CommandGroup.SCHEDULES, keys="h", on={"schedules"}, footer=True)
async def show_history(screen: MainScreen, text: str) -> None:
    """Show the occurrences of the schedule."""
    schedule = _schedule(screen)
    upcoming = await screen.rt.schedules.upcoming(schedule.name, 5)
    lines = [f"{times.in_zone(at, schedule.timezone)}  next" for at in reversed(upcoming)]
    for fire in await screen.rt.schedules.history(schedule.name, HISTORY):
        job = f" D-{fire.job}" if fire.job else ""
        reason = f": {fire.reason}" if fire.reason else ""
        at = times.in_zone(fire.due_at, fire.timezone)
        lines.append(f"{at}  {fire.status}{job}{reason}")
    title = f"{schedule.name} ({schedule.timezone})"
    await screen.app.push_screen(TextDialog(title, "\n".join(lines) or "no occurrences"))


def _schedule(screen: MainScreen) -> Schedule:
    schedule = cast("Schedule | None", screen.table.row)
    if schedule is None:
        raise Refused("choose a schedule first")
    return schedule


# Actions on templates.


@dashboard_command(
    "run-template",
    CommandGroup.TEMPLATES,
    keys="r",
    on={"templates"},
    needs=Verb.SUBMIT,
    footer=True,
)
async def run_template(screen: MainScreen, text: str) -> None:
    """Submit a job from the template.

    A form asks for its parameters.
    """
    template = _template(screen)
    if template.definition is None:
        raise Refused(f"template {template.name} was removed")

    async def submit(parameters: dict[str, Any]) -> SubmittedJob:
        name = f"{template.name}@{template.version}"
        request = await screen.rt.templates.request(name, parameters, typed=True)
        return await screen.rt.submissions.submit(request, screen.actor)

    if template.definition.properties:
        dialog = ParametersDialog(f"Run {template.name}", template.definition, submit)
        submitted = await screen.ask(dialog)
    elif await screen.ask(ConfirmDialog(f"Run {template.name}?", "Submits a job.")):
        submitted = await submit({})
    else:
        return
    if submitted is not None:
        screen.show_message(submitted_message(submitted))
        screen.show_job_row(submitted.number)


@dashboard_command(
    "remove-template", CommandGroup.TEMPLATES, on={"templates"}, needs=Verb.TEMPLATES
)
async def remove_template(screen: MainScreen, text: str) -> None:
    """Remove the template."""
    template = _template(screen)
    note = "Its versions are kept for the jobs that were made from them."
    if await screen.ask(ConfirmDialog(f"Remove template {template.name}?", note)):
        await screen.rt.templates.remove(template.name, screen.actor)
        screen.show_message(f"Removed template {template.name}")


def _template(screen: MainScreen) -> Template:
    template = cast("Template | None", screen.table.row)
    if template is None:
        raise Refused("choose a template first")
    return template
