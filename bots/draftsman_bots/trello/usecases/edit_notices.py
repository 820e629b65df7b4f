"""Edits of what a job was made from, or of a counted answer: a comment says they change nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from draftsman.domain.job import TERMINAL, Job
from draftsman.domain.messages.target import parse
from draftsman.domain.trello.board import card_subject_key
from draftsman_bots.trello import ids
from draftsman_bots.trello.parsers.actions import ActionKind

if TYPE_CHECKING:
    from draftsman.domain.people.actor import Actor
    from draftsman_bots.trello.context import BotContext
    from draftsman_bots.trello.parsers.actions import Action

EDITED: Final = "edited"
"""Outcome of an edit that a comment says changes nothing."""


async def notify_request_edited(desk: BotContext, action: Action) -> str | None:
    """Say once for a job that an edit of its card, or of a comment it read, changes nothing.

    None where no job that goes on was made from what was edited.
    """
    if action.member == desk.me.id:
        return None
    job = await _made_of(desk, action.card)
    if job is None or not _read(job, action):
        return None
    text = (
        f"{job.name} was made from this card as it was: the edit changes nothing. To have it done"
        f" differently, cancel it (draftsman cancel {job.name}) and put the label on again."
    )
    at = parse(ids.card_target(action.card))
    await desk.rt.outbox.notice(job.number, EDITED, text, at=at)
    return EDITED


async def notify_answer_edited(
    desk: BotContext, action: Action, actor: Actor, question: str, job: int
) -> None:
    """Say once for a comment that the answer in it counts as it was."""
    text = (
        f"{actor.display_name}: your answer to {question} counts as it was: the edit of your"
        " comment changes nothing."
    )
    at = parse(ids.card_target(action.card))
    await desk.rt.outbox.notice(job, f"{EDITED}:{action.comment}", text, at=at)


async def _made_of(desk: BotContext, card: str) -> Job | None:
    """Return the job that goes on and was made from a card; a card has one at a time."""
    for number in sorted({copy.job for copy in await desk.rt.threads.trello(card)}, reverse=True):
        job = await desk.rt.read_model.job(number)
        if job.subject_key == card_subject_key(card) and job.status not in TERMINAL:
            return job
    return None


def _read(job: Job, action: Action) -> bool:
    """Return whether a job has read something that was edited after that, by Trello's clock."""
    ticket = job.payload.get("ticket")
    if not isinstance(ticket, dict):
        return False
    if action.kind is not ActionKind.COMMENT_EDITED:
        read = ids.parse_time(ticket.get("activity"))
        after = action.date is not None and read is not None and action.date > read
        return action.edited and after
    comments: Any = ticket.get("comments")
    return isinstance(comments, list) and any(
        isinstance(one, dict) and one.get("id") == action.comment and one.get("text") != action.text
        for one in comments
    )
