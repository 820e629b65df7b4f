"""Commands in comments that tell the agent of a job something, or pause, resume or cancel it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from draftsman.errors import NotFound, NotPermitted, Refused, UsageError
from draftsman.forges.forge_event import EventKind
from draftsman.forges.project import is_project
from draftsman.ids import job_name
from draftsman.jobs.job import AGENT_TYPE, TERMINAL
from draftsman_bots.conversation import job_controls
from draftsman_bots.forges.replies import UNMAPPED, reply, reply_without_job

if TYPE_CHECKING:
    from draftsman.jobs.job import Job
    from draftsman_bots.conversation.comments import ParsedComment
    from draftsman_bots.forges.context import EventContext

_VERBS: Final = "tell|pause|resume|cancel|answer|approve|deny"
DONE: Final = {"pause": "paused", "resume": "resumed", "cancel": "canceled"}


def as_comment(text: str, mention: str) -> str:
    """Return a text with the command `/draftsman` as a mention, and the verb after it as a command.

    `/draftsman pause D-7 REASON` is `@draftsman /pause D-7 REASON`. A verb without the name of a
    job begins a request, as in `@draftsman cancel the second refund`, unless it stands alone.
    """
    named = re.compile(
        rf"\A\s*(?:/draftsman|@{re.escape(mention)})[,:]?[ \t]+(?P<verb>{_VERBS})(?![\w-])"
        r"(?=[ \t]+D-[1-9]|[ \t]*(?:\Z|[\r\n]))",
        re.IGNORECASE,
    )
    tell = re.compile(r"\A\s*/draftsman[ \t]+(?P<verb>tell)(?![\w-]):?", re.IGNORECASE)
    for pattern in (named, tell):
        if match := pattern.match(text):
            return f"@{mention} /{match['verb']}{text[match.end() :]}"
    return re.sub(
        r"\A\s*/draftsman(?![\w-])", lambda _: f"@{mention} ", text, count=1, flags=re.IGNORECASE
    )


def is_control(text: str, comment: ParsedComment) -> bool:
    """Return whether a comment commands a job of draftsman: other programs have such commands."""
    if not (comment.tell or comment.control):
        return False
    return comment.job is not None or text.lstrip().startswith("@")


async def on_control(context: EventContext, comment: ParsedComment) -> str:
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
        if comment.tell:
            sent = await context.rt.messages.send(
                job.number, actor, comment.text, event=context.key[-500:]
            )
            await reply(context, job.number, f"{sent}.")
        else:
            await job_controls.change(context.rt, job.number, actor, comment, context.key[-500:])
            if context.event.kind is EventKind.ANSWER:  # an issue shows the state of its job
                await reply(context, job.number, f"{DONE[comment.control]}.")
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


async def _job(context: EventContext, comment: ParsedComment) -> Job:
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
    if comment.tell:
        jobs = [job for job in jobs if job.type == AGENT_TYPE]
    if not jobs:
        verb = "tell" if comment.tell else comment.control
        raise UsageError(f"no job was requested here; name it: /draftsman {verb} {job_name(142)} …")
    return next((job for job in jobs if job.status not in TERMINAL), jobs[0])
