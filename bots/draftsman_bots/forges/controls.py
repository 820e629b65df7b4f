"""Commands in comments that tell the agent of a job something, or pause, resume or cancel it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from draftsman.errors import NotFound, NotPermitted, Refused, UsageError
from draftsman.forges.forge_event import EventKind
from draftsman.forges.project import is_project
from draftsman.ids import job_name
from draftsman.jobs.job import AGENT_TYPE, TERMINAL
from draftsman_bots.conversation import job_controls
from draftsman_bots.conversation.commands import About, Surface, help_text, unavailable
from draftsman_bots.forges.replies import UNMAPPED, reply, reply_without_job

if TYPE_CHECKING:
    from draftsman.jobs.job import Job
    from draftsman_bots.conversation.parser import ParsedText
    from draftsman_bots.forges.context import EventContext

DONE: Final = {"pause": "paused", "resume": "resumed", "cancel": "canceled"}


def is_control(comment: ParsedText) -> bool:
    """Return whether a comment commands a job of draftsman: other programs have such commands."""
    if comment.verb != "tell" and comment.verb not in DONE:
        return False
    return comment.job is not None or comment.addressed


def reply_text(comment: ParsedText) -> str:
    """Return the reply to a command of which only the help is here; "" for others."""
    command = comment.command
    if command is None or not (comment.addressed or comment.job is not None):
        return ""
    if Surface.FORGE not in command.surfaces:
        return unavailable(command, Surface.FORGE)
    return help_text(Surface.FORGE) if command.about is About.NOTHING else ""


async def on_control(context: EventContext, comment: ParsedText) -> str:
    """Execute the command in the name of its author; return `answered` or `refused`."""
    actor = await context.actor()
    if actor.person is None:
        await reply_without_job(context, UNMAPPED.format(login=actor.id))
        return "refused"
    try:
        job = await _job(context, comment)
    except (NotFound, UsageError) as error:
        await reply_without_job(context, str(error))
        return "refused"
    try:
        if comment.verb == "tell":
            sent = await context.rt.messages.send(
                job.number, actor, comment.text, event=context.key[-500:]
            )
            await reply(context, job.number, f"{sent}.")
        else:
            await job_controls.change(context.rt, job.number, actor, comment, context.key[-500:])
            if context.event.kind is EventKind.ANSWER:  # an issue shows the state of its job
                await reply(context, job.number, f"{DONE[comment.verb]}.")
    except (NotPermitted, Refused, UsageError) as error:
        await reply(context, job.number, str(error))
        return "refused"
    return "answered"


async def jobs_here(context: EventContext) -> list[Job]:
    """Return the jobs of the issue or pull request, the newest first."""
    event = context.event
    numbers = {copy.job for copy in await context.rt.threads.forge(context.issue.target)}
    if event.kind is EventKind.ANSWER:  # an issue of GitLab may have the same number
        of_pull = context.rt.forge_events.follow_ups.jobs_of_pull
        numbers |= set(await of_pull(context.forge, event.project, event.number))
    return [await context.rt.read_model.job(number) for number in sorted(numbers, reverse=True)]


async def _job(context: EventContext, comment: ParsedText) -> Job:
    """Return the named job, else the newest unfinished one here; raises NotFound and UsageError.

    The secret of a repository's webhook proves nothing about the jobs of other repositories.
    """
    jobs = await jobs_here(context)
    if comment.job is not None:
        named = await context.rt.read_model.job(comment.job)
        is_here = any(job.number == named.number for job in jobs)
        if not is_here and not is_project(
            context.settings.url, context.event.project, named.repo_host, named.repo
        ):
            raise UsageError(f"{named.name} is not a job of {context.event.project}")
        return named
    if comment.verb == "tell":
        jobs = [job for job in jobs if job.type == AGENT_TYPE]
    if not jobs:
        example = f"/draftsman {comment.verb} {job_name(142)} …"
        raise UsageError(f"no job was requested here; name it: {example}")
    return next((job for job in jobs if job.status not in TERMINAL), jobs[0])
