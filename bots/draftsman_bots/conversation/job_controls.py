"""Comments that pause, resume or cancel a job: `/pause REASON`, `/resume`, `/cancel REASON`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from draftsman.errors import Refused, UsageError
from draftsman.ids import job_name
from draftsman.jobs.job import Status

if TYPE_CHECKING:
    from draftsman.people.actor import Actor
    from draftsman.questions.answer import Verdict
    from draftsman.runtime import Runtime
    from draftsman_bots.conversation.parser import ParsedText


async def change(rt: Runtime, job: int, actor: Actor, comment: ParsedText, key: str) -> None:
    """Change a job as the comment with this key says, once; raises DraftsmanError."""
    match comment.verb:
        case "pause" if not comment.text.strip():
            raise UsageError("a pause needs a reason: /pause REASON")
        case "pause":
            await rt.job_control.pause(job, actor, comment.text, event=key)
        case "resume":
            await rt.job_control.resume(job, actor, event=key)
        case _:
            await _cancel(rt, job, actor, comment.text)


async def _cancel(rt: Runtime, job: int, actor: Actor, reason: str) -> None:
    """Cancel a job; a comment that arrives again finds it canceled."""
    try:
        await rt.job_control.cancel(job, actor, reason or None)
    except Refused:
        if (await rt.read_model.job(job)).status is not Status.CANCELED:
            raise


# The sentence about a pause in the reply to an answer, which does not continue a paused job.


async def pause_note(rt: Runtime, job: int, verdict: Verdict, resume: str) -> str:
    """Return the person, the reason and the command to resume; "" for a job that is not paused.

    `resume` is the command of the chat. An answer that was refused or repeated has no note.
    """
    if not verdict.accepted or verdict.duplicate or verdict.recorded:
        return ""
    why = await rt.read_model.why(job)
    if not why.paused:
        return ""
    return f"{job_name(job)} is {' '.join(why.text.split())}. To continue it: {resume}"
