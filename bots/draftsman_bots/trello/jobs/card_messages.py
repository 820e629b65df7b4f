"""Comments for the bot that answer no question, as messages to the agent of the card's job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from draftsman.errors import Refused, UsageError
from draftsman.jobs.control.job_message import AGENT_TYPE
from draftsman.jobs.job import TERMINAL
from draftsman.people.actor import Actor
from draftsman.questions.question import Question
from draftsman_bots.conversation.comments import ParsedComment
from draftsman_bots.trello import ids
from draftsman_bots.trello.actions import Action, ActionKind
from draftsman_bots.trello.deliveries.error_text import error_text

if TYPE_CHECKING:
    from draftsman.people.spans import Spans
    from draftsman_bots.trello.context import BotContext

Sent = tuple[int, "str | Spans", str]
"""The job, the reply, and the outcome for a counter."""


def is_message(comment: ParsedComment, action: Action, questions: Sequence[Question]) -> bool:
    """Return whether a comment that no open question accepts is meant for the agent.

    A comment that was written while a question was open is a late answer.
    """
    if comment.tell:
        return True
    if not comment.mentioned or comment.decision is not None or comment.question is not None:
        return False
    late = (
        item.answered_at is not None and action.date is not None and item.answered_at >= action.date
        for item in questions
    )
    return bool(comment.text) and not any(late)


async def send(
    context: BotContext, action: Action, actor: Actor, comment: ParsedComment, jobs: Sequence[int]
) -> Sent | None:
    """Send a comment to the agent of the card's job; None if no job of the card takes messages."""
    jobs_of_card = [await context.rt.read_model.job(number) for number in jobs]
    live = [job for job in jobs_of_card if job.type == AGENT_TYPE and job.status not in TERMINAL]
    named = [job for job in jobs_of_card if job.number == comment.job] or live
    agents = [job for job in jobs_of_card if job.type == AGENT_TYPE]
    if not named and agents and await context.rt.forge_events.follow_ups.is_open(agents[0].number):
        named = agents[:1]
    if not named:
        return None
    job = named[0]
    if action.kind is ActionKind.COMMENT_EDITED:
        text = f"an edit is not sent to the agent of {job.name}; write another comment."
        return job.number, text, "replied"
    key = ids.action_key(action.comment)
    try:
        sent = await context.rt.messages.send(job.number, actor, comment.text, event=key)
    except (Refused, UsageError) as error:
        return job.number, error_text(error), "rejected"
    return job.number, f"{sent}.", "message_sent"
