"""Jobs from templates and described types: their list, their form, and its submission."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from draftsman.errors import InvalidParameters, NotFound
from draftsman.jobs.requests.entered_form import EnteredForm
from draftsman.json_schemas.form_fields import entered_values, form_fields
from draftsman.people.policy import Verb
from draftsman.text import first_line
from draftsman_bots.conversation.requests import assignments
from draftsman_bots.slack import ids
from draftsman_bots.slack.deliveries.blocks import Block, actions, button, context, section
from draftsman_bots.slack.deliveries.mrkdwn import escape_truncated
from draftsman_bots.slack.ephemeral import Reply
from draftsman_bots.slack.home.modal_views import open_modal
from draftsman_bots.slack.people.access import authorize_form
from draftsman_bots.slack.requests.job_requests import (
    RequestOrigin,
    all_targets,
    job_target,
    submit_request,
)
from draftsman_bots.slack.requests.template_form import can_list, parameter_form

if TYPE_CHECKING:
    from draftsman.jobs.requests.service.submissions import SubmittedJob
    from draftsman.people.actor import Actor
    from draftsman.schedules.job_form import JobForm
    from draftsman_bots.slack.context import BotContext
    from draftsman_bots.slack.payloads.payloads import BlockAction, ViewSubmission

INVALID: Final = "this form is not valid any more; open it again"
MAX_LISTED: Final = 12
"""Templates that a list shows: a message is limited to about 11,000 characters."""


async def list_templates(ctx: BotContext, text: str) -> Reply:
    """Return the templates and described job types whose name or description has the text."""
    found = [
        form
        for form in await ctx.rt.job_forms.all()
        if text.casefold() in f"{form.label} {form.description}".casefold()
    ]
    if not found and text:
        return Reply(f"No template contains {escape_truncated(text, 60)}.")
    if not found:
        return Reply("No templates yet. In a terminal: `draftsman templates add --help`")
    blocks = [_listed(form) for form in found[:MAX_LISTED]]
    names = ", ".join(form.label for form in found[:MAX_LISTED])
    if (hidden := len(found) - MAX_LISTED) > 0:
        search = f"{hidden} more; to search: `{ctx.settings.command} templates TEXT`"
        blocks.append(context(search))
        names = f"{names}; {search}"
    return Reply(f"Templates: {names}", blocks)


async def run_template(
    ctx: BotContext, actor: Actor, origin: RequestOrigin, text: str
) -> Reply | SubmittedJob | None:
    """Run a template or type `NAME PARAMETER=VALUE …`; without values, open its form.

    Raises DraftsmanError.
    """
    name, values = assignments(text)
    if not name:
        return await list_templates(ctx, "")
    ctx.rt.policy.check(actor, Verb.SUBMIT)
    form = await ctx.rt.job_forms.find(name)
    if values or not form.inputs.properties:
        return await _submit(ctx, actor, origin, form, values, typed=True)
    view = parameter_form(form, origin.target)
    if origin.interaction is None:  # a message cannot open a modal
        note = f"{name} has parameters."
        return Reply(note, [section(note), actions([_button(form)])])
    open_modal(ctx, origin.interaction, view)
    return None


async def run_pressed(ctx: BotContext, actor: Actor, click: BlockAction, name: str) -> Reply | None:
    """Run the template of a button, as `run_template` does."""
    target = job_target(click.channel, click.thread, click.user_id)
    result = await run_template(ctx, actor, RequestOrigin(click.key, target, click), name)
    if result is None or isinstance(result, Reply):
        return result
    return Reply(f"{result.name} is {result.status}. Updates follow.")


async def submit_form(ctx: BotContext, view: ViewSubmission) -> dict[str, str]:
    """Submit the job of a form; return errors by block. Raises DraftsmanError.

    The form was made from a version of the template, and makes a job of that version; the form of a
    type is valid for its description.
    """
    metadata = ids.parse_form(view.metadata)
    if metadata is None:
        raise NotFound(INVALID)
    name, target, revised = metadata
    actor = await authorize_form(ctx, view.user, target)
    form = await ctx.rt.job_forms.find(name)
    if form.version != name:
        raise NotFound(INVALID)
    fields = form_fields(form.inputs, can_list)
    values = entered_values(fields, view.values)
    try:
        await _submit(ctx, actor, RequestOrigin(view.key, target, revises=revised), form, values)
    except InvalidParameters as error:
        errors = {
            field.id: error.problems[field.name]
            for field in fields
            if field.name in error.problems and field.id in view.values
        }
        if not errors:
            raise
        return errors
    return {}


async def _submit(
    ctx: BotContext,
    actor: Actor,
    origin: RequestOrigin,
    form: JobForm,
    values: Mapping[str, Any],
    *,
    typed: bool = False,
) -> SubmittedJob | None:
    """Submit the job, or find the job with this key; None if that job's request differs."""
    targets = all_targets(ctx, origin.target)
    entered = EnteredForm(values, typed=typed, event=origin.key, notify=targets)
    request = await ctx.rt.job_forms.request(form, entered)
    return await submit_request(ctx, actor, origin, request)


def _listed(form: JobForm) -> Block:
    description = escape_truncated(first_line(form.description, 500), 200)
    parameters = ", ".join(form.inputs.properties)
    lines = [f"*{form.label}* {description}", escape_truncated(parameters, 200)]
    block = section("\n".join(line for line in lines if line.strip()))
    block["accessory"] = _button(form)
    return block


def _button(form: JobForm) -> Block:
    action = f"{ids.TEMPLATE}:{form.path}"
    value = ids.template_value(form.path)
    if form.inputs.properties:
        return button("Run…", action, value)
    return button("Run", action, value, confirm=f"Submit a job of {form.label}?")
