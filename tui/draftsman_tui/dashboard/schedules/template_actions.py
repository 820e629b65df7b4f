"""Actions on templates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from draftsman.errors import Refused
from draftsman_tui.dashboard.dialogs.confirm_dialog import ConfirmDialog
from draftsman_tui.dashboard.schedules.parameters_dialog import ParametersDialog
from draftsman_tui.entities.jobs import submitted_message

if TYPE_CHECKING:
    from draftsman.jobs.requests.service.submissions import SubmittedJob
    from draftsman.schedules.template import Template
    from draftsman_tui.dashboard.tables.screen import MainScreen


async def run_template(screen: MainScreen, text: str) -> None:
    """Submit a job from the template, after a form for its parameters."""
    template = _template(screen)
    if template.definition is None:
        raise Refused(f"template {template.name} was removed")

    async def submit(values: dict[str, Any]) -> SubmittedJob:
        name = f"{template.name}@{template.version}"
        request = await screen.rt.templates.request(name, values, typed=True)
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
