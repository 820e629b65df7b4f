"""Jobs from templates and described types: their list, their form, and its submission."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from draftsman.errors import InvalidParameters, NotFound, UsageError
from draftsman.people.policy import Verb
from draftsman.text import first_line
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
from draftsman_bots.slack.requests.template_form import (
    FormSubject,
    form_parameters,
    parameter_form,
)

if TYPE_CHECKING:
    from draftsman.job_types.published.description import PublishedType
    from draftsman.jobs.requests.service.submissions import SubmittedJob
    from draftsman.people.actor import Actor
    from draftsman.schedules.template import Template
    from draftsman_bots.slack.context import BotContext
    from draftsman_bots.slack.payloads.payloads import BlockAction, ViewSubmission

INVALID: Final = "this form is not valid any more; open it again"
MAX_LISTED: Final = 12
"""Templates that a list shows: a message is limited to about 11,000 characters."""


@dataclass(frozen=True, slots=True)
class _Found:
    """A template or a job type with its form."""

    subject: FormSubject
    template: Template | None = None
    type: PublishedType | None = None


async def list_templates(ctx: BotContext, text: str) -> Reply:
    """Return the templates and described job types whose name or description has the text."""
    subjects = [
        FormSubject.of_template(template, definition)
        for template in await ctx.rt.templates.all()
        if (definition := template.definition) is not None
    ]
    subjects += [FormSubject.of_type(type) for type in await ctx.rt.published_types.all()]
    found = [
        subject
        for subject in subjects
        if text.casefold() in f"{subject.label} {subject.description}".casefold()
    ]
    if not found and text:
        return Reply(f"No template contains {escape_truncated(text, 60)}.")
    if not found:
        return Reply("No templates yet. In a terminal: `draftsman templates add --help`")
    blocks = [_listed(subject) for subject in found[:MAX_LISTED]]
    names = ", ".join(subject.label for subject in found[:MAX_LISTED])
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
    found = await _find(ctx, name)
    if values or not found.subject.inputs.properties:
        return await _submit(ctx, actor, origin, found, values, typed=True)
    view = parameter_form(found.subject, origin.target)
    if origin.interaction is None:  # a message cannot open a modal
        note = f"{name} has parameters."
        return Reply(note, [section(note), actions([_button(found.subject)])])
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
    form = ids.parse_form(view.metadata)
    if form is None:
        raise NotFound(INVALID)
    name, target, revised = form
    actor = await authorize_form(ctx, view.user, target)
    found = await _find(ctx, name)
    if found.template is not None:
        await ctx.rt.templates.get(found.template.name)  # it may be removed by now
    elif found.subject.name != name:
        raise NotFound(INVALID)
    values, errors = entered_values(found.subject.inputs, view.values)
    if errors:
        return errors
    try:
        await _submit(ctx, actor, RequestOrigin(view.key, target, revises=revised), found, values)
    except InvalidParameters as error:
        errors = {
            parameter.block: error.problems[parameter.name]
            for parameter in form_parameters(found.subject.inputs)
            if parameter.name in error.problems and parameter.block in view.values
        }
        if not errors:
            raise
    return errors


async def _find(ctx: BotContext, name: str) -> _Found:
    """Return the template or type of a name: `bump`, `bump@3`, `type/report:weekly`.

    Raises NotFound, UsageError.
    """
    kind, _, rest = name.rpartition("/")
    if kind not in ("", "template", "type"):
        raise UsageError(f"{name[:80]!r}: write NAME, template/NAME or type/NAME")
    base = rest.partition("@")[0]
    types = {} if kind == "template" else await ctx.rt.published_types.of([base])
    if kind == "type":
        type = types.get(base) or await ctx.rt.published_types.get(base)
        return _Found(FormSubject.of_type(type), type=type)
    try:
        template = await ctx.rt.templates.get(rest)
    except NotFound:
        if base not in types or "@" in rest:
            raise
        return _Found(FormSubject.of_type(types[base]), type=types[base])
    if base in types and "@" not in rest:
        raise UsageError(
            f"{base} is a template and a job type: write template/{base} or type/{base}"
        )
    if template.definition is None:
        raise NotFound(f"template {template.name} was removed")
    return _Found(FormSubject.of_template(template, template.definition), template=template)


async def _submit(
    ctx: BotContext,
    actor: Actor,
    origin: RequestOrigin,
    found: _Found,
    values: Mapping[str, Any],
    *,
    typed: bool = False,
) -> SubmittedJob | None:
    """Submit the job, or find the job with this key; None if that job's request differs."""
    targets = all_targets(ctx, origin.target)
    if found.type is not None:
        request = await ctx.rt.request_checks.of_type(
            found.type, values, event=origin.key, notify=targets, typed=typed
        )
    else:
        request = await ctx.rt.templates.request(
            found.subject.name, values, event=origin.key, notify=targets, typed=typed
        )
    return await submit_request(ctx, actor, origin, request)


def _listed(subject: FormSubject) -> Block:
    description = escape_truncated(first_line(subject.description, 500), 200)
    parameters = ", ".join(subject.inputs.properties)
    lines = [f"*{subject.label}* {description}", escape_truncated(parameters, 200)]
    block = section("\n".join(line for line in lines if line.strip()))
    block["accessory"] = _button(subject)
    return block


def _button(subject: FormSubject) -> Block:
    name = subject.name.partition("@")[0]
    action = f"{ids.TEMPLATE}:{name}"
    value = ids.template_value(name)
    if subject.inputs.properties:
        return button("Run…", action, value)
    return button("Run", action, value, confirm=f"Submit a job of {subject.label}?")
