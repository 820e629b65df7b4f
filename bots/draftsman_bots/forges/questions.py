"""Comments on issues and pull requests: answers, commands on jobs and questions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from draftsman.forges.forge_event import EventKind
from draftsman_bots.conversation.commands import About, Surface
from draftsman_bots.conversation.places import load_place
from draftsman_bots.conversation.replies import KnownAuthor, ReplyKind, TextReply, Wording, respond
from draftsman_bots.conversation.resolution import Outcome, Talk, WrittenText, resolve
from draftsman_bots.forges.controls import check_command, jobs_here
from draftsman_bots.forges.replies import reply, reply_without_job

if TYPE_CHECKING:
    from draftsman_bots.conversation.parser import ParsedText
    from draftsman_bots.conversation.resolution import Place, Resolved
    from draftsman_bots.forges.context import EventContext

IGNORED: Final = "ignored"
WORDING: Final = Wording(Surface.FORGE, decide="/")
REFUSED: Final = (ReplyKind.REFUSED, ReplyKind.REPLIED)


async def on_comment(context: EventContext, comment: ParsedText) -> tuple[str, Resolved]:
    """Submit or execute a comment; return `answered`, `refused` or `ignored`, and what it is."""
    place = await _place(context)
    text = WrittenText(comment, context.key[-500:], written=context.event.at)
    resolved = resolve(text, place)
    is_request = comment.command is not None and comment.command.about is About.REQUEST
    is_request = is_request and resolved.outcome is Outcome.COMMAND
    if resolved.outcome in (Outcome.MESSAGE, Outcome.TALK) or is_request:
        return IGNORED, resolved
    actor = await context.actor()
    if resolved.outcome is Outcome.ANSWER and actor.person is None and not comment.explicit:
        return IGNORED, resolved  # a stranger who names a choice
    if comment.command is not None and comment.command.about is About.JOB:
        refusal = await check_command(context, actor, comment)
        if refusal:
            await reply_without_job(context, refusal)
            return "refused", resolved
    conversation = KnownAuthor(context.rt, actor, WORDING)
    result = await respond(conversation, text, place, resolved)
    return await _reply(context, result), resolved


async def _place(context: EventContext) -> Place:
    """Return the issue or pull request with its jobs, and the questions posted there."""
    copies = await context.rt.threads.place("forge", context.issue.target)
    posted = {(copy.job, copy.question) for copy in copies}
    author = await context.rt.people.actor(context.account)
    jobs = [job.number for job in await jobs_here(context)]
    return await load_place(
        context.rt,
        Talk.NONE,
        author,
        jobs,
        lambda question: (question.job, question.ordinal) in posted,
    )


async def _reply(context: EventContext, result: TextReply | None) -> str:
    """Reply, where the comments of the question and of the issue's job do not show a change."""
    if result is None:
        return IGNORED
    is_shown = result.kind is ReplyKind.CHANGED and context.event.kind is not EventKind.ANSWER
    if result.text and not is_shown:
        if result.job is None:
            await reply_without_job(context, "".join(map(str, result.spans)))
        else:
            await reply(context, result.job, result.spans)
    return "refused" if result.kind in REFUSED else "answered"
