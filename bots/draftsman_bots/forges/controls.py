"""Commands in comments that tell the agent of a job something, or pause, resume or cancel it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from draftsman.errors import NotFound
from draftsman.forges.forge_event import EventKind
from draftsman.forges.project import is_project
from draftsman.people.policy import unlinked
from draftsman_bots.conversation.commands import About, Surface, help_text, unavailable

if TYPE_CHECKING:
    from draftsman.jobs.job import Job
    from draftsman.people.actor import Actor
    from draftsman_bots.conversation.parser import ParsedText
    from draftsman_bots.forges.context import EventContext


def is_for_bot(comment: ParsedText) -> bool:
    """Return whether a comment is none for another program, which may have such commands, too."""
    command = comment.command
    is_shared = command is None or command.about is About.QUESTION
    return is_shared or comment.addressed or comment.job is not None


def reply_text(comment: ParsedText) -> str:
    """Return the reply to a command of which only the help is here; "" for others."""
    command = comment.command
    if command is None or not (comment.addressed or comment.job is not None):
        return ""
    if Surface.FORGE not in command.surfaces:
        return unavailable(command, Surface.FORGE)
    return help_text(Surface.FORGE) if command.about is About.NOTHING else ""


async def check_command(context: EventContext, actor: Actor, comment: ParsedText) -> str:
    """Return why a command on a job is refused; "" if it is not.

    The secret of a repository's webhook proves nothing about the jobs of other repositories.
    """
    if actor.person is None:
        return str(unlinked(actor))
    if comment.job is None:
        return ""
    try:
        named = await context.rt.read_model.job(comment.job)
    except NotFound as error:
        return str(error)
    is_here = any(job.number == named.number for job in await jobs_here(context))
    project = context.event.project
    asked = named.request
    if is_here or (
        asked and is_project(context.settings.url, project, asked.repo_host, asked.repo)
    ):
        return ""
    return f"{named.name} is not a job of {project}"


async def jobs_here(context: EventContext) -> list[Job]:
    """Return the jobs of the issue or pull request, the newest first."""
    event = context.event
    numbers = {copy.job for copy in await context.rt.threads.place("forge", context.issue.target)}
    if event.kind is EventKind.ANSWER:  # an issue of GitLab may have the same number
        of_pull = context.rt.forge_events.follow_ups.jobs_of_pull
        numbers |= set(await of_pull(context.forge, event.project, event.number))
    return [await context.rt.read_model.job(number) for number in sorted(numbers, reverse=True)]
