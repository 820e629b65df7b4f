"""Submission of jobs that are requested in Slack; the job reports where it was requested."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from draftsman.actions.action import Call
from draftsman.actions.requests import revise
from draftsman.deliveries.target import parse
from draftsman.errors import (
    FieldError,
    IdempotencyConflict,
    NotFound,
    NotPermitted,
    RejectedField,
    UsageError,
)
from draftsman.jobs.job import TERMINAL
from draftsman.jobs.requests.attachments import MAX_FILES
from draftsman.jobs.requests.invocation import FileRef, Invocation, RecentDuplicate
from draftsman.jobs.requests.service.request_checks import check_agent
from draftsman.jobs.requests.service.submissions import SubmittedJob, invocation
from draftsman.repos.repo_catalog import RepoLocation
from draftsman.repos.repo_url import is_repo_url
from draftsman_bots.conversation.parser import ParsedText
from draftsman_bots.conversation.requests import JobRequest
from draftsman_bots.slack import ids
from draftsman_bots.slack.ephemeral import Reply, error_reply, send_ephemeral
from draftsman_bots.slack.home import modal_views
from draftsman_bots.slack.home.modal_views import open_modal
from draftsman_bots.slack.payloads.payloads import PAYLOAD
from draftsman_bots.slack.people.access import authorize_person, check_modal_access
from draftsman_bots.slack.records.service import SlackThreads
from draftsman_bots.text import truncate

if TYPE_CHECKING:
    from slack_bolt.async_app import AsyncApp

    from draftsman.jobs.job import Job
    from draftsman.people.actor import Actor
    from draftsman_bots.slack.context import BotContext
    from draftsman_bots.slack.payloads.payloads import Interaction, MessageEvent, Shortcut


MAX_TITLE: Final = 120
"""Graphemes of a title; the text is kept in full."""
_REMOTE: Final = ("https://", "ssh://", "git@")


class UnknownRepository(FieldError):
    """The repository is unknown, or not allowed in a request from chat."""


@dataclass(frozen=True, slots=True)
class RequestOrigin:
    """The origin of a request: `target` gets its notifications, `key` makes it idempotent."""

    key: str
    target: str
    interaction: Interaction | None = None
    """Can open a modal, within three seconds; None for a message."""
    attachments: tuple[FileRef, ...] = ()
    """The files of the request, and the thread in which it was made."""
    revises: int | None = None
    """The job whose request this is, with changes."""


def job_target(channel: str, thread: str, user: str) -> str:
    """Return the target of a job's notifications.

    Outside of threads a private conversation maps to the user: the bot may not be a member of it.
    """
    if thread:
        return f"slack:{channel}/{thread}"
    return f"slack:{user}" if not channel or channel.startswith("D") else f"slack:{channel}"


async def submit(
    ctx: BotContext, actor: Actor, origin: RequestOrigin, request: JobRequest
) -> SubmittedJob | None:
    """Submit the job, or find the job with this key; None if that job's request differs.

    A message that was edited or delivered twice is one request. Raises UsageError, NotPermitted.
    """
    fields = await request_fields(ctx, request, origin.target)
    submission = invocation(key=origin.key, external_event_id=origin.key, **fields)
    await ctx.rt.request_checks.check(submission, origin="slack")
    return await submit_request(ctx, actor, origin, submission)


async def submit_request(
    ctx: BotContext, actor: Actor, origin: RequestOrigin, submission: Invocation
) -> SubmittedJob | None:
    """Submit a checked request with the files of its origin, after the job that it revises.

    None if the job of its key has another request.
    """
    submission = submission.model_copy(update={"attachments": origin.attachments})
    try:
        if origin.revises is not None:  # a link has a transaction of its own
            submitted = (await revise(Call(ctx.rt, actor), origin.revises, submission)).value
        else:
            submitted = await _submit_in_time(ctx, submission, actor)
    except IdempotencyConflict:
        return None
    if origin.attachments:
        ctx.downloads.wake()
    return submitted


async def _submit_in_time(ctx: BotContext, submission: Invocation, actor: Actor) -> SubmittedJob:
    """Submit a request; a timeout of the listener may not hide a job that exists by then."""
    try:
        return await ctx.rt.submissions.submit(submission, actor)
    except asyncio.CancelledError as error:
        if not (error.args and isinstance(error.args[0], SubmittedJob)):
            raise
        if (task := asyncio.current_task()) is not None:
            task.uncancel()
        return error.args[0]


async def request_fields(ctx: BotContext, request: JobRequest, target: str) -> dict[str, Any]:
    """Return the fields of a request, with its repository and agent; raises UsageError."""
    fields: dict[str, Any] = dict(request.options)
    location = None
    if "repo" in fields:
        location = await _repository(ctx, fields["repo"])
        if not is_repo_url(fields["repo"]) and location is not None:
            fields |= {"repo": location.repo.remote_url, "resolution": {"path": location.path}}
    agent = await _agent(ctx, fields, request.text, location)
    return fields | {
        "mode": request.mode,
        "agent": agent,
        "title": job_title(request.text),
        "text": request.text,
        "notify": all_targets(ctx, target),
    }


async def find_job(ctx: BotContext, message: MessageEvent) -> Job | None:
    """Return the job that this message requested when it was posted."""
    for topic in await SlackThreads(ctx.rt).topics(message.channel, message.thread or message.ts):
        job = await ctx.rt.read_model.job(topic.job)
        if job.idempotency_key == message.key:
            return job
    return None


async def edit_notice(
    ctx: BotContext, message: MessageEvent, parsed: ParsedText, job: Job
) -> Reply | None:
    """Return the reply to the author of an edited request: the edit has no effect."""
    request = parsed.request
    asked = job.request
    if isinstance(request, JobRequest) and (
        asked is not None and (request.text, request.mode) == (asked.text, str(asked.mode))
    ):
        actor = await authorize_person(ctx, message.user, message.channel)
        origin = RequestOrigin(
            message.key, job_target(message.channel, message.thread or message.ts, "")
        )
        with contextlib.suppress(UsageError):  # the edited options are invalid
            if await submit(ctx, actor, origin, request) is not None:
                return None
    notice = f"D-{job.number} was created from the original message; the edit has no effect."
    if job.status in TERMINAL:
        return Reply(f"{notice} To change the request, write a new message.")
    cancel = f"`{ctx.settings.command} cancel D-{job.number}`"
    return Reply(
        f"{notice} To change the request, cancel the job ({cancel}) and write a new message."
    )


async def recent_duplicate(
    ctx: BotContext, submitted: SubmittedJob, origin: RequestOrigin
) -> RecentDuplicate | None:
    """Return a recent job with the same author, place and text.

    The job is committed by now, so a timeout of the listener may not hide it.
    """
    try:
        return await ctx.duplicates.find(submitted.number, parse(origin.target))
    except asyncio.CancelledError:
        if (task := asyncio.current_task()) is not None:
            task.uncancel()
        return None


def job_title(text: str) -> str | None:
    """Return the first line that is not blank, truncated between graphemes."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return truncate(line, MAX_TITLE) or None


async def _agent(
    ctx: BotContext, fields: dict[str, Any], text: str, location: RepoLocation | None
) -> str | None:
    """Return the agent of a request, None if the run will know it.

    Raises RejectedField in the words of a chat command.
    """
    checks = ctx.rt.request_checks
    settings = ctx.rt.settings
    try:
        name: str | None = fields.get("agent")
        if name is None:
            repo = fields.get("repo")
            name = await checks.agent(invocation(repo=repo, text=text), location)
        if name is not None:
            check_agent(name, settings)
    except RejectedField as error:
        agents = ", ".join(error.known or ())
        problem = f"unknown agent {error.value[:60]!r}; choose: {agents}"
        if error.rule == "required":
            problem = f"--agent is required: {agents}"
        raise error.reworded(problem) from None
    return name


async def _repository(ctx: BotContext, repo: str) -> RepoLocation | None:
    """Return the known repository of a name or URL.

    An unknown repository must be a URL: local folders are rejected, also on the embedded database.
    Raises UnknownRepository.
    """
    if not is_repo_url(repo):
        try:
            return await ctx.rt.repos.place(repo)
        except NotFound as error:
            raise UnknownRepository(
                error.reason, field="repo", problem=error.reason, hint=error.hint
            ) from None
    if not repo.startswith(_REMOTE):
        problem = "is not valid; use a name or a URL: https://…, ssh://… or git@…"
        text = f"--repo={repo[:60]} {problem}"
        raise UnknownRepository(text, field="repo", problem=problem)
    registered = await ctx.rt.repos.known(repo)
    return RepoLocation(registered) if registered is not None else None


def all_targets(ctx: BotContext, target: str) -> tuple[str, ...]:
    """Return the request's target, and the configured targets in other channels."""
    channel = parse(target).target
    always = ctx.rt.settings.notifications.targets
    return (target, *(other for other in always if other.partition("/")[0] != f"slack:{channel}"))


# Files and threads of requests in Slack, as attachments of their jobs.


SCOPE: Final = "files:read"
NO_SCOPE: Final = "the app lacks the scope files:read of the full manifest"
THREAD_FILE: Final = "slack-thread.md"


def file_refs(ctx: BotContext, files: Sequence[FileRef]) -> tuple[FileRef, ...]:
    """Return the files of a message for its job; without the scope all are refused."""
    scopes = ctx.identity.scopes
    if scopes is None or SCOPE in scopes:
        return tuple(files)
    return tuple(file.model_copy(update={"reason": file.reason or NO_SCOPE}) for file in files)


def request_refs(
    ctx: BotContext, channel: str, thread: str, ts: str, files: Sequence[FileRef] = ()
) -> tuple[FileRef, ...]:
    """Return the files of a request and, if it is in a thread that the bot reads, the thread."""
    refs = file_refs(ctx, files)
    if not thread or not ctx.identity.reads_replies:
        return refs
    reference = {"channel": channel, "thread": thread, "before": ts}
    messages = FileRef(reference=reference, name=THREAD_FILE, media_type="text/markdown")
    return (*refs[: MAX_FILES - 1], messages, *refs[MAX_FILES - 1 :])


# Listeners of shortcuts, which open the modal of a new job.


def register(app: AsyncApp, ctx: BotContext) -> None:
    """Register both shortcuts."""

    async def shortcut(ack: Any, context: dict[str, Any]) -> None:
        on_shortcut(ctx, context[PAYLOAD])
        await ack()

    app.shortcut(re.compile(""))(shortcut)


def on_shortcut(ctx: BotContext, shortcut: Shortcut) -> None:
    """Open the modal, with the text of the message, if any."""
    if shortcut.callback not in (ids.NEW_JOB, ids.FROM_MESSAGE):
        return
    try:
        open_new_job(ctx, shortcut, shortcut.thread or shortcut.ts, shortcut.text)
    except NotPermitted as error:
        send_ephemeral(ctx, shortcut.reply_target, error_reply(error))


def open_new_job(ctx: BotContext, opened: Interaction, thread: str = "", text: str = "") -> None:
    """Open the modal of a job that reports where it was opened; raises NotPermitted."""
    check_modal_access(ctx, opened.user)
    target = job_target(opened.channel, thread, opened.user_id)
    view = modal_views.new_job(ctx.rt.settings.agent_names, target, text)
    open_modal(ctx, opened, view)
