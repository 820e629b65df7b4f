"""The sentence about a pause in the reply to an answer, which does not continue a paused job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from draftsman.ids import job_name

if TYPE_CHECKING:
    from draftsman.questions.answer import Verdict
    from draftsman.runtime import Runtime


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
