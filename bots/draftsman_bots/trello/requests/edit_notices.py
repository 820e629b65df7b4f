"""Replies to edits without effect: of a card after its job was created, or of accepted answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from draftsman.deliveries.target import parse
from draftsman.jobs.job import TERMINAL, Job
from draftsman_bots.trello import ids
from draftsman_bots.trello.actions import ActionKind
from draftsman_bots.trello.records.board import card_subject_key

if TYPE_CHECKING:
    from draftsman.people.actor import Actor
    from draftsman_bots.trello.actions import Action
    from draftsman_bots.trello.context import BotContext

EDITED: Final = "edited"
"""Outcome of an edit that was replied to."""


async def notify_request_edited(context: BotContext, action: Action) -> str | None:
    """Reply, once per job, that an edit of its card or of a comment it read has no effect.

    Return None if no live job was created from the edited text.
    """
    if action.member == context.me.id:
        return None
    job = await live_job(context, action.card)
    if job is None or not _has_read(job, action):
        return None
    text = (
        f"This edit does not affect {job.name}, which was created from the earlier text. To use"
        f" the new text, cancel the job (draftsman cancel {job.name}) and add the label again."
    )
    at = parse(ids.card_target(action.card))
    await context.rt.outbox.notice(job.number, EDITED, text, at=at)
    return EDITED


async def notify_answer_edited(
    context: BotContext, action: Action, actor: Actor, question: str, job: int
) -> None:
    """Reply, once per comment, that its answer was already accepted."""
    text = (
        f"{actor.display_name}: your answer to {question} was already accepted. Editing the"
        " comment does not change it."
    )
    at = parse(ids.card_target(action.card))
    await context.rt.outbox.notice(job, f"{EDITED}:{action.comment}", text, at=at)


async def live_job(context: BotContext, card: str) -> Job | None:
    """Return the live job that was created from a card; a card has a single live job at a time."""
    for number in sorted(
        {copy.job for copy in await context.rt.threads.place("trello", card)},
        reverse=True,
    ):
        job = await context.rt.read_model.job(number)
        if job.subject_key == card_subject_key(card) and job.status not in TERMINAL:
            return job
    return None


def _has_read(job: Job, action: Action) -> bool:
    """Return whether a job read the edited text before the edit, by Trello's clock."""
    ticket = job.payload.get("ticket")
    if not isinstance(ticket, dict):
        return False
    if action.kind is not ActionKind.COMMENT_EDITED:
        read_at = ids.parse_time(ticket.get("activity"))
        after = action.date is not None and read_at is not None and action.date > read_at
        return action.edited and after
    comments: Any = ticket.get("comments")
    return isinstance(comments, list) and any(
        isinstance(comment, dict)
        and comment.get("id") == action.comment
        and comment.get("text") != action.text
        for comment in comments
    )
