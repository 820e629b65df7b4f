"""Comments that pause, resume or cancel the card's job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from draftsman.errors import NotPermitted, Refused, UsageError
from draftsman.ids import job_name
from draftsman.jobs.job import TERMINAL
from draftsman_bots.conversation import job_controls
from draftsman_bots.trello import ids
from draftsman_bots.trello.actions import Action, ActionKind
from draftsman_bots.trello.deliveries.error_text import error_text

if TYPE_CHECKING:
    from draftsman.people.actor import Actor
    from draftsman_bots.conversation.comments import ParsedComment
    from draftsman_bots.trello.context import BotContext

OUTCOMES: Final = {"pause": "job_paused", "resume": "job_resumed", "cancel": "job_canceled"}
"""Outcomes of comments, for a counter."""


async def change(
    context: BotContext, action: Action, actor: Actor, comment: ParsedComment, jobs: Sequence[int]
) -> tuple[int, str | None, str]:
    """Change the job of a card; return it, the reply, and the outcome for a counter.

    The job's own notice on the card shows a change, without another reply. A comment that arrives
    twice, by webhook and poll, changes the job once.
    """
    jobs_of_card = [await context.rt.read_model.job(number) for number in jobs]
    live = [job.number for job in jobs_of_card if job.status not in TERMINAL]
    job = comment.job or (live or list(jobs))[0]
    if action.kind is ActionKind.COMMENT_EDITED:
        text = f"an edit does not {comment.control} {job_name(job)}; write another comment."
        return job, text, "replied"
    try:
        await job_controls.change(context.rt, job, actor, comment, ids.action_key(action.comment))
    except (NotPermitted, Refused, UsageError) as error:
        return job, error_text(error), "rejected"
    return job, None, OUTCOMES[comment.control]
