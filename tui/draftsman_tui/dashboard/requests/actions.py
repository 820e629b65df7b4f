"""Job submission: form, command line and copy of a job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from draftsman.actions.requests import run_type, submit
from draftsman.errors import IdempotencyConflict, NotFound, RejectedField, UsageError
from draftsman.ids import job_name
from draftsman.jobs.requests.invocation import Invocation
from draftsman.jobs.requests.service.request_checks import build_request, require_instructions
from draftsman.text import first_line
from draftsman_tui.common.requests import field_text
from draftsman_tui.dashboard.command import JOBS, CommandGroup, dashboard_command
from draftsman_tui.dashboard.dialogs.simple_dialogs import ChoiceDialog
from draftsman_tui.dashboard.frame.perform import call_of
from draftsman_tui.dashboard.requests import form as job_form
from draftsman_tui.dashboard.requests.dialog import OWN_TYPES, NewJobDialog
from draftsman_tui.dashboard.schedules.parameters_dialog import ParametersDialog
from draftsman_tui.terminal.results import result_text

if TYPE_CHECKING:
    from draftsman.actions.action import ActionResult
    from draftsman.job_types.published.description import PublishedType
    from draftsman.jobs.requests.invocation import Invocation
    from draftsman.jobs.requests.service.submissions import SubmittedJob
    from draftsman.repos.repo_catalog import Catalog
    from draftsman.runtime import Runtime
    from draftsman.settings import Settings
    from draftsman_tui.dashboard.frame.base_screen import BaseScreen
    from draftsman_tui.dashboard.tables.screen import MainScreen


@dashboard_command(
    "new",
    CommandGroup.JOBS,
    keys="n",
    does=submit,
    takes="fix REPO TEXT",
    footer={"jobs"},
)
async def new(screen: BaseScreen, text: str) -> None:
    """Submit a job.

    The form is filled from the arguments.
    """
    catalog = await screen.rt.repos.catalog()
    await _form(screen, "New job", job_form.from_line(text, catalog), catalog)


@dashboard_command(
    "run-type", CommandGroup.JOBS, keys="r", does=run_type, on={"types"}, takes="", footer=True
)
async def run_described_type(screen: MainScreen, text: str) -> None:
    """Submit a job of the type.

    A form asks for its parameters.
    """
    await _run_type(screen, screen.chosen("type"))


async def _run_type(screen: BaseScreen, type: PublishedType) -> None:
    """Submit a job of a type, with parameters from a form."""

    async def do(parameters: dict[str, Any]) -> ActionResult[SubmittedJob]:
        return await run_type(call_of(screen), type, parameters)

    result = await screen.ask(ParametersDialog(f"Run {type.name}", type.inputs, do))
    if result is not None:
        screen.show_message(result_text(result))
        screen.show_job_row(result.value.number)


@dashboard_command(
    "copy-job", CommandGroup.JOBS, does=submit, keys="N", on=JOBS, takes="", takes_names=True
)
async def copy_job(screen: BaseScreen, text: str) -> None:
    """Submit a copy of the job."""
    job = await screen.rt.read_model.job(screen.jobs()[0])
    await _form(
        screen, f"New job like {job.name}", job_form.from_job(job), await screen.rt.repos.catalog()
    )


def form_completions(
    catalog: Catalog, settings: Settings, types: Sequence[PublishedType] = ()
) -> dict[str, Sequence[str]]:
    """Return completion values by field; `types` are the described ones."""
    notify_targets = ["log", "none", *(f"webhook:{name}" for name in sorted(settings.webhooks))]
    return {
        "repo": [location.name for location in catalog.locations],
        "agent": settings.agent_names,
        "notify": notify_targets,
        "type": ["run_agent", *sorted({*settings.handlers, *(type.name for type in types)})],
    }


class JobSubmission:
    """Submission under one idempotency key: submitting twice creates one job."""

    def __init__(self, screen: BaseScreen) -> None:
        self._screen = screen
        self._key = _key()

    async def __call__(self, typed: job_form.Typed) -> ActionResult[SubmittedJob]:
        """Submit the job; raises job_form.FormErrors and the errors of the service."""
        rt = self._screen.rt
        request = await validate_request(typed, rt)
        update: dict[str, Any] = {"key": self._key}
        if request.unique is not None:  # a new key is no reason to join a job
            update["unique"] = request.unique.model_copy(update={"by": request.unique_by})
        try:
            return await submit(call_of(self._screen), request.model_copy(update=update))
        except IdempotencyConflict as error:  # an earlier attempt succeeded; its reply was lost
            if error.job is None:
                raise
            self._key = _key()
            raise UsageError(
                f"already submitted as {job_name(error.job)}; enter submits this as another job"
            ) from None


async def validate_request(typed: job_form.Typed, rt: Runtime) -> Invocation:
    """Return the validated request; raises job_form.FormErrors with every invalid field."""
    fields, problems = job_form.partition(typed)
    request = None
    if not problems.keys() & {"text", "title", "type"}:
        try:
            require_instructions(fields)
        except RejectedField as error:
            problems[error.field] = field_text(error)
    if "type" not in problems:
        request = await _resolve(fields, problems, rt)
    try:
        notify = fields.get("notify", ()) if request is None else request.notify
        rt.targets.of(notify)
    except UsageError as error:
        problems.setdefault("notify", str(error))
    if problems or request is None:
        raise job_form.FormErrors(problems)
    return request


async def _resolve(
    fields: Mapping[str, Any], problems: dict[str, str], rt: Runtime
) -> Invocation | None:
    """Resolve the request; add each problem, and drop its field to find the next."""
    fields = dict(fields)
    while True:
        try:
            return await rt.request_checks.resolve(build_request(fields, rt.settings))
        except RejectedField as error:
            name = error.field
            problem = field_text(error)
        except (UsageError, NotFound) as error:
            name = ""
            problem = str(error)
        if name in problems or _is_consequence(name, fields, problems):
            return None
        problems[name] = problem
        if name == "type" or fields.pop(name, None) is None:
            return None


def _is_consequence(name: str, fields: Mapping[str, Any], problems: Mapping[str, str]) -> bool:
    """Return whether the problem only follows from another invalid field."""
    if name == "agent" and name not in fields:
        return "repo" in problems
    return not name and "payload" in problems


async def _form(screen: BaseScreen, title: str, typed: job_form.Typed, catalog: Catalog) -> None:
    help = job_form.hints(catalog)
    if (agent := screen.rt.settings.default_agent) is not None:
        help["agent"] = f"(repository's default, or {agent})"
    types = await screen.rt.published_types.all()
    completions = form_completions(catalog, screen.rt.settings, types)
    note = "ctrl+t: run a type of your own" if types else ""
    dialog = NewJobDialog(title, typed, completions, JobSubmission(screen), help, note)
    result = await screen.ask(dialog)
    if result is OWN_TYPES:
        choices = [(f"{type.name}  {first_line(type.description, 60)}", type) for type in types]
        if (type := await screen.ask(ChoiceDialog("Run which type?", choices))) is not None:
            await _run_type(screen, type)
    elif result is not None:
        screen.show_message(result_text(result))
        screen.show_job_row(result.value.number)


def _key() -> str:
    return f"tui:{uuid4()}"
