"""Commands that pause, resume or cancel a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from draftsman.errors import Refused, UsageError
from draftsman.ids import job_name
from draftsman.jobs.job import Status

if TYPE_CHECKING:
    from draftsman.people.actor import Actor
    from draftsman.questions.answer import Verdict
    from draftsman.runtime import Runtime


VERBS: Final = ("pause", "resume", "cancel")


async def change(rt: Runtime, job: int, actor: Actor, verb: str, reason: str, key: str) -> str:
    """Pause, resume or cancel a job, once for each key; return the reply. Raises DraftsmanError."""
    if verb == "cancel":
        return await _cancel(rt, job, actor, reason)
    if verb == "resume":
        await rt.job_control.resume(job, actor, event=key)
        return f"{job_name(job)} is resumed."
    if not reason:
        raise UsageError(f"a pause needs a reason: pause {job_name(job)} REASON")
    await rt.job_control.pause(job, actor, reason, event=key)
    return f"{job_name(job)} is paused."


async def _cancel(rt: Runtime, job: int, actor: Actor, reason: str) -> str:
    """Cancel a job; a text that arrives again finds it canceled."""
    try:
        result = await rt.job_control.cancel(job, actor, reason or None)
    except Refused:
        if (await rt.read_model.job(job)).status is not Status.CANCELED:
            raise
        return f"{job_name(job)} is already canceled."
    return f"{job_name(job)} is {'being canceled' if result.requested else 'canceled'}."


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
