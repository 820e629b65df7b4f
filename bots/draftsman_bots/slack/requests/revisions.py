"""Retry with changes: the request of a finished job in a form, submitted as a job after it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from draftsman.actions.action import Call
from draftsman.actions.requests import revise
from draftsman.errors import NotFound
from draftsman.jobs.requests.invocation import PARAMETERS
from draftsman.repos.repo_url import is_repo_url
from draftsman_bots.conversation.requests import MODES, JobRequest
from draftsman_bots.json_fields import mapping, nested, string
from draftsman_bots.slack import ids
from draftsman_bots.slack.home import modal_views
from draftsman_bots.slack.home.modal_views import ShownRequest, View, open_modal
from draftsman_bots.slack.people.access import authorize_form
from draftsman_bots.slack.requests import job_requests
from draftsman_bots.slack.requests.job_requests import RequestOrigin, job_target
from draftsman_bots.slack.requests.template_form import parameter_form

if TYPE_CHECKING:
    from draftsman.jobs.job import Job
    from draftsman.people.actor import Actor
    from draftsman_bots.slack.context import BotContext
    from draftsman_bots.slack.payloads.payloads import BlockAction, ViewSubmission

CHANGES: Final = "Changes to this request:"


async def open_form(ctx: BotContext, actor: Actor, click: BlockAction, number: int) -> None:
    """Open the form of a finished job's request; raises DraftsmanError."""
    await revise.asked(Call(ctx.rt, actor), number)
    job = await ctx.rt.seen_by(actor).read_model.job(number)
    target = job_target(click.channel, click.thread or click.ts, click.user_id)
    view = await _template_view(ctx, job, target)
    if view is None:
        agents = ctx.rt.settings.agent_names
        view = modal_views.revised_request(number, _shown_request(job), agents, target)
    open_modal(ctx, click, view)


async def submit_form(ctx: BotContext, view: ViewSubmission) -> dict[str, str]:
    """Submit the changed request, in the name of the person who submits the form.

    Return errors by block; raises DraftsmanError.
    """
    revision = ids.parse_revision(view.metadata)
    if revision is None:
        raise NotFound("this form is not valid any more; open it again")
    number, target = revision
    text = view.values.get(modal_views.TEXT, "").strip()
    if not text:
        return {modal_views.TEXT: "Describe the work."}
    actor = await authorize_form(ctx, view.user, target)
    await revise.asked(Call(ctx.rt, actor), number)
    job = await ctx.rt.seen_by(actor).read_model.job(number)
    original = job.agent_request.text or job.own_title or ""
    if modal_views.is_too_long(original):
        text = f"{original}\n\n{CHANGES}\n{text}"
    mode = view.values.get(modal_views.MODE) or str(job.agent_request.mode)
    fields = {
        "repo": view.values.get(modal_views.REPO, "").strip(),
        "agent": view.values.get(modal_views.AGENT, ""),
    }
    if fields["repo"] == _shown_request(job).repo:
        fields["ref"] = string(nested(job.payload, "repo"), "ref")
    options = {name: value for name, value in fields.items() if value}
    request = JobRequest(text, mode if mode in MODES else MODES[0], options)
    origin = RequestOrigin(view.key, target, revises=number)
    await job_requests.submit(ctx, actor, origin, request)
    return {}


async def _template_view(ctx: BotContext, job: Job, target: str) -> View | None:
    """Return the form of the template that made the job; None without a template."""
    if job.template is None:
        return None
    try:
        await ctx.rt.templates.get(job.template)
        template = await ctx.rt.templates.get(f"{job.template}@{job.template_version}")
    except NotFound:  # removed: its text is shown
        return None
    form = await ctx.rt.job_forms.of_template(template)
    if not form.inputs.properties:
        return None
    values = mapping(job.overrides.get(PARAMETERS))
    return parameter_form(form, target, job=job.number, values=values)


def repository_options(job: Job) -> dict[str, str]:
    """Return the options of a request for the repository, branch and agent of a job."""
    result = job.result or {}
    branch = result.get("branch") if job.pr_url is None else None
    ref = string(nested(job.payload, "repo"), "ref")
    options = {
        "repo": _shown_request(job).repo,
        "agent": job.agent_request.agent or "",
        "ref": str(branch or ref),
    }
    return {name: value for name, value in options.items() if value}


def _shown_request(job: Job) -> ShownRequest:
    source = string(nested(job.payload, "repo"), "source")
    is_url = is_repo_url(source) and source.startswith(("https://", "ssh://", "git@"))
    repo = source if is_url else job.agent_request.repo or ""
    text = job.agent_request.text or job.own_title or ""
    return ShownRequest(text, str(job.agent_request.mode), job.agent_request.agent, repo)
