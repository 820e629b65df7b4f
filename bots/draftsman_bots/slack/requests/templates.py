"""Jobs from templates: the list of templates, their form, and its submission."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from draftsman.errors import InvalidParameters, NotFound
from draftsman.people.policy import Verb
from draftsman_bots.conversation.requests import assignments
from draftsman_bots.slack import ids
from draftsman_bots.slack.deliveries.blocks import Block, actions, button, context, section
from draftsman_bots.slack.deliveries.mrkdwn import escape_truncated
from draftsman_bots.slack.ephemeral import Reply
from draftsman_bots.slack.home.modal_views import open_modal
from draftsman_bots.slack.people.access import authorize_form
from draftsman_bots.slack.requests.form_values import entered_values
from draftsman_bots.slack.requests.job_requests import (
    RequestOrigin,
    all_targets,
    job_target,
    submit_request,
)
from draftsman_bots.slack.requests.template_form import form_parameters, template_form

if TYPE_CHECKING:
    from draftsman.jobs.requests.service.submissions import SubmittedJob
    from draftsman.people.actor import Actor
    from draftsman.schedules.template import Template, TemplateDefinition
    from draftsman_bots.slack.context import BotContext
    from draftsman_bots.slack.payloads.payloads import BlockAction, ViewSubmission

MAX_LISTED: Final = 12
"""Templates that a list shows: a message is limited to about 11,000 characters."""


async def list_templates(ctx: BotContext, text: str) -> Reply:
    """Return the templates whose name or description contains the text."""
    templates = [
        (template, definition)
        for template in await ctx.rt.templates.all()
        if (definition := template.definition) is not None
        and text.casefold() in f"{template.name} {definition.description}".casefold()
    ]
    if not templates and text:
        return Reply(f"No template contains {escape_truncated(text, 60)}.")
    if not templates:
        return Reply("No templates yet. In a terminal: `draftsman templates add --help`")
    blocks = [_listed(template, definition) for template, definition in templates[:MAX_LISTED]]
    names = ", ".join(template.name for template, _ in templates[:MAX_LISTED])
    if (hidden := len(templates) - MAX_LISTED) > 0:
        search = f"{hidden} more; to search: `{ctx.settings.command} templates TEXT`"
        blocks.append(context(search))
        names = f"{names}; {search}"
    return Reply(f"Templates: {names}", blocks)


async def run_template(
    ctx: BotContext, actor: Actor, origin: RequestOrigin, text: str
) -> Reply | SubmittedJob | None:
    """Run a template `NAME PARAMETER=VALUE …`; without values, open the form of its parameters.

    Raises DraftsmanError.
    """
    name, values = assignments(text)
    if not name:
        return await list_templates(ctx, "")
    ctx.rt.policy.check(actor, Verb.SUBMIT)
    template = await ctx.rt.templates.get(name)
    definition = _definition(template)
    if values or not definition.inputs.properties:
        return await _submit(ctx, actor, origin, name, values, typed=True)
    view = template_form(template, definition, origin.target)
    if origin.interaction is None:  # a message cannot open a modal
        note = f"{name} has parameters."
        return Reply(note, [section(note), actions([_button(template, definition)])])
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

    The form was made from a version of the template, and makes a job of that version.
    """
    form = ids.parse_form(view.metadata)
    if form is None:
        raise NotFound("this form is not valid any more; open it again")
    name, target, revised = form
    actor = await authorize_form(ctx, view.user, target)
    await ctx.rt.templates.get(name.partition("@")[0])  # it may be removed by now
    template = await ctx.rt.templates.get(name)
    definition = _definition(template)
    values, errors = entered_values(definition, view.values)
    if errors:
        return errors
    try:
        await _submit(ctx, actor, RequestOrigin(view.key, target, revises=revised), name, values)
    except InvalidParameters:
        problems = await ctx.rt.templates.problems(template, values)
        errors = {
            parameter.block: problems[parameter.name]
            for parameter in form_parameters(definition)
            if parameter.name in problems and parameter.block in view.values
        }
        if not errors:
            raise
    return errors


async def _submit(
    ctx: BotContext,
    actor: Actor,
    origin: RequestOrigin,
    name: str,
    values: Mapping[str, Any],
    *,
    typed: bool = False,
) -> SubmittedJob | None:
    """Submit the job, or find the job with this key; None if that job's request differs."""
    targets = all_targets(ctx, origin.target)
    request = await ctx.rt.templates.request(
        name, values, event=origin.key, notify=targets, typed=typed
    )
    return await submit_request(ctx, actor, origin, request)


def _definition(template: Template) -> TemplateDefinition:
    if template.definition is None:
        raise NotFound(f"template {template.name} was removed")
    return template.definition


def _listed(template: Template, definition: TemplateDefinition) -> Block:
    description = escape_truncated(definition.description, 200)
    parameters = ", ".join(definition.inputs.properties)
    lines = [f"*{template.name}* {description}", escape_truncated(parameters, 200)]
    block = section("\n".join(line for line in lines if line.strip()))
    block["accessory"] = _button(template, definition)
    return block


def _button(template: Template, definition: TemplateDefinition) -> Block:
    action = f"{ids.TEMPLATE}:{template.name}"
    value = ids.template_value(template.name)
    if definition.inputs.properties:
        return button("Run…", action, value)
    return button("Run", action, value, confirm=f"Submit a job of template {template.name}?")
