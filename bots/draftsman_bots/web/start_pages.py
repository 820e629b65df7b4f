"""Starting a job: the templates and described job types, and a form of their parameters."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import RedirectResponse

from draftsman.actions.action import Action, ActionResult, Call
from draftsman.actions.requests import run_type
from draftsman.actions.schedules import run_template
from draftsman.errors import FieldError, IdempotencyConflict, InvalidParameters, UsageError
from draftsman.ids import job_name
from draftsman.json_schemas.form_fields import (
    FormField,
    Input,
    choice_label,
    entered_values,
    form_fields,
    option_value,
)
from draftsman.people.policy import Verb
from draftsman.schedules.template import Template
from draftsman.text import first_line
from draftsman_bots.web.access import OTHER_SESSION, client_address
from draftsman_bots.web.pages import page, read_form
from draftsman_bots.web.problems import PageProblem, error_text

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from draftsman.jobs.requests.service.submissions import SubmittedJob
    from draftsman.schedules.job_form import JobForm
    from draftsman_bots.web.access import Visit
    from draftsman_bots.web.context import WebContext

ACTIONS: Final[tuple[Action[Any, ..., Any], ...]] = (run_type, run_template)
"""The actions of the forms."""
KEY_LENGTHS: Final = range(8, 65)
"""Characters of the random key of a form, which makes it submit a single job."""
OWN_FIELDS: Final = 3
"""Fields of a form besides those of its parameters."""
CHANGED: Final = "The parameters have changed meanwhile. Check them, and send the form again."


async def overview(context: WebContext, request: Request) -> Response:
    """Show what can be started."""
    visit = await _visit(context, request)
    forms = await context.rt_of(visit).job_forms.all()
    rows = [(form.label, form.path, first_line(form.description)) for form in forms]
    return page("start", visit, active="jobs", rows=rows)


async def show(context: WebContext, request: Request) -> Response:
    """Show the form of a template or type."""
    visit = await _visit(context, request)
    form = await _form(context, request, visit)
    return _form_page(visit, form, form_fields(form.inputs))


async def submit(context: WebContext, request: Request) -> Response:
    """Submit the job of a form, then show it."""
    visit = await _visit(context, request)
    form = await _form(context, request, visit)
    fields = form_fields(form.inputs)
    most = OWN_FIELDS + sum(len(field.choices) or 1 for field in fields)
    sent = await read_form(request, most=most)
    context.limits.count_form(visit.session.id, client_address(request, context.settings))
    entered = {field.id: _entered(field, sent) for field in fields}
    key = sent.get("key", "")
    if not context.access.is_form_of(visit, sent):
        return _form_page(visit, form, fields, entered, status=403, problem=OTHER_SESSION)
    if len(key) not in KEY_LENGTHS:
        raise PageProblem(400, "The form is incomplete.", "Open the page again.")
    if sent.get("version") != form.version:
        return _form_page(visit, form, fields, entered, key=key, status=409, problem=CHANGED)
    call = Call(context.rt_of(visit), visit.actor, f"web:{visit.session.id}:start:{key}")
    try:
        result = await _run(call, form, entered_values(fields, entered))
    except IdempotencyConflict as error:
        sent_as = "" if error.job is None else f" as {job_name(error.job)}"
        problem = f"This form was sent before{sent_as}. Send it again to start another job."
        return _form_page(visit, form, fields, entered, status=409, problem=problem)
    except UsageError as error:
        problems = _problems(error)
        shown = {field.name: problems[field.name] for field in fields if field.name in problems}
        problem = "" if problems and len(shown) == len(problems) else error_text(error)
        return _form_page(
            visit, form, fields, entered, key=key, status=422, problem=problem, problems=shown
        )
    return RedirectResponse(f"/jobs/{result.value.name}", 303)


async def _visit(context: WebContext, request: Request) -> Visit:
    """Return the visit of a person who may submit jobs; raises NotPermitted."""
    visit = await context.visit(request)
    context.rt.policy.check(visit.actor, Verb.SUBMIT)
    return visit


async def _form(context: WebContext, request: Request, visit: Visit) -> JobForm:
    """Return the form of a path; raises NotFound."""
    name = f"{request.path_params['kind']}/{request.path_params['name']}"
    return await context.rt_of(visit).job_forms.find(name)


async def _run(call: Call, form: JobForm, values: Mapping[str, Any]) -> ActionResult[SubmittedJob]:
    if isinstance(form.of, Template):
        return await run_template(call, f"{form.of.name}@{form.of.version}", values)
    return await run_type(call, form.of, values)


def _problems(error: UsageError) -> Mapping[str, str]:
    """Return the problem of each parameter that an error names."""
    if isinstance(error, InvalidParameters):
        return error.problems
    if not isinstance(error, FieldError):
        return {}
    _, _, path = error.field.partition("payload.")
    name, _, inner = path.partition(".")
    return {name: ": ".join(filter(None, (inner, error.problem)))} if name else {}


def _entered(field: FormField, sent: Mapping[str, str]) -> str:
    """Return the text entered in a field; each checkbox is a field of the form."""
    if field.input is not Input.CHOICES:
        return sent.get(field.id, "")
    options = map(option_value, range(len(field.choices)))
    return ",".join(option for option in options if f"{field.id}{option}" in sent)


def _form_page(
    visit: Visit,
    form: JobForm,
    fields: Sequence[FormField],
    entered: Mapping[str, str] | None = None,
    *,
    key: str = "",
    status: int = 200,
    problem: str = "",
    problems: Mapping[str, str] | None = None,
) -> Response:
    if entered is None:
        entered = {field.id: field.text(field.schema.get("default")) for field in fields}
    problems = problems or {}
    rows = [_row(field, entered[field.id], problems.get(field.name)) for field in fields]
    return page(
        "start_form",
        visit,
        status=status,
        active="jobs",
        form=form,
        rows=rows,
        first_wrong=next((row["field"].id for row in rows if row["problem"]), ""),
        key=key or secrets.token_urlsafe(12),
        problem=problem,
    )


def _row(field: FormField, text: str, problem: str | None) -> dict[str, Any]:
    options = [(option_value(at), choice_label(it)) for at, it in enumerate(field.choices)]
    if field.input is Input.BOOLEAN:
        options = [("true", "Yes"), ("false", "No")]
    return {
        "field": field,
        "kind": field.input.value,
        "text": text,
        "chosen": text.split(","),
        "options": options,
        "problem": problem,
    }
