"""New jobs: asked for in a form, on the `:` line, or as another was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from draftsman.errors import IdempotencyConflict, NotFound, UsageError
from draftsman.runtime import targets
from draftsman.services.jobs.submissions import invocation
from draftsman_tui.common.job_request import (
    OTHER_TEXT_IGNORED,
    InvalidField,
    build_request,
    require_instructions,
    resolve_request,
)
from draftsman_tui.dashboard import job_form
from draftsman_tui.dashboard.dialogs.new_job_dialog import NewJobDialog

if TYPE_CHECKING:
    from draftsman.domain.invocation import Invocation
    from draftsman.domain.repos.repo_catalog import Catalog
    from draftsman.runtime import Runtime
    from draftsman.services.jobs.submissions import SubmittedJob
    from draftsman.settings import Settings
    from draftsman_tui.dashboard.screens.base import BaseScreen


async def new(desk: BaseScreen, text: str) -> None:
    """Open the form, filled with what is given."""
    catalog = await desk.rt.repos.catalog()
    await _form(desk, "New job", job_form.of_line(text, catalog), catalog)


async def copy_job(desk: BaseScreen, text: str) -> None:
    """Open the form, filled with what a job was asked for."""
    job = await desk.rt.read_model.job(desk.jobs()[0])
    await _form(
        desk, f"New job like {job.name}", job_form.of_job(job), await desk.rt.repos.catalog()
    )


def form_completions(catalog: Catalog, settings: Settings) -> dict[str, Sequence[str]]:
    """Return what completes the fields of a form."""
    places = ["log", "none", *(f"webhook:{name}" for name in sorted(settings.webhooks))]
    return {
        "repo": [place.name for place in catalog.places()],
        "agent": settings.agent_names,
        "notify": places,
        "type": ["run_agent", *sorted(settings.handlers)],
    }


class JobSubmission:
    """What a form submits, under one idempotency key: pressed twice, it is one job."""

    def __init__(self, desk: BaseScreen) -> None:
        self._desk = desk
        self._key = _key()

    async def __call__(self, typed: job_form.Typed) -> SubmittedJob:
        """Make the job; raises form.Errors, and whatever else core refuses."""
        rt = self._desk.rt
        request = await validate_request(typed, rt)
        try:
            return await rt.submissions.submit(
                request.model_copy(update={"key": self._key}), self._desk.actor
            )
        except IdempotencyConflict as error:  # the reply to an earlier try was lost, and it counted
            self._key = _key()
            raise UsageError(
                f"what you sent before is D-{error.job} already; enter makes another job of this"
            ) from None


async def validate_request(typed: job_form.Typed, rt: Runtime) -> Invocation:
    """Return the request, as `submit` reads it; raises form.Errors with all that is wrong."""
    fields, wrong = job_form.partition(typed)
    request = None
    if not wrong.keys() & {"text", "title", "type"}:
        try:
            require_instructions(fields)
        except InvalidField as error:
            wrong[error.field] = error.problem
    if "type" not in wrong:
        request = await _settled(fields, wrong, rt)
    try:
        told = {"notify": fields.get("notify", ())}
        targets(rt.settings)[0].of(request or invocation(**told))
    except UsageError as error:
        wrong.setdefault("notify", str(error))
    if wrong or request is None:
        raise job_form.Errors(wrong)
    return request


async def _settled(
    fields: Mapping[str, Any], wrong: dict[str, str], rt: Runtime
) -> Invocation | None:
    """Return the request; what is wrong is added, and left out to find what else is."""
    fields = dict(fields)
    while True:
        try:
            return await resolve_request(build_request(fields, rt.settings), rt)
        except InvalidField as error:
            name, said = error.field, error.problem
        except (UsageError, NotFound) as error:
            name, said = "", str(error)
        if name in wrong or _follows(name, fields, wrong):
            return None
        wrong[name] = said
        if name == "type" or fields.pop(name, None) is None:
            return None


def _follows(name: str, fields: Mapping[str, Any], wrong: Mapping[str, str]) -> bool:
    """Return whether this is wrong only because another field is: one may have said it."""
    if name == "agent" and name not in fields:
        return "repo" in wrong
    return not name and "payload" in wrong


async def _form(desk: BaseScreen, title: str, typed: job_form.Typed, catalog: Catalog) -> None:
    help = job_form.hints(catalog)
    if (agent := desk.rt.settings.default_agent) is not None:
        help["agent"] = f"none: that of the repository, or {agent}"
    dialog = NewJobDialog(
        title, typed, form_completions(catalog, desk.rt.settings), JobSubmission(desk), help
    )
    made = await desk.ask(dialog)
    if made is None:
        return
    joined = f"joined: a live job has the same subject; {OTHER_TEXT_IGNORED}"
    why = {"joined": joined, "deduplicated": "was made before"}
    desk.show_message(f"{made.name} {why.get(made.how, made.how)}")
    desk.find(made.number)


def _key() -> str:
    return f"tui:{uuid4()}"
