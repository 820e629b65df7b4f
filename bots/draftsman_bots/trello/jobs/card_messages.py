"""Comments for the bot that answer no question, as messages to the agent of the card's job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from draftsman.deliveries.target import parse
from draftsman.errors import NotPermitted, Refused, UsageError
from draftsman.ids import job_name
from draftsman.jobs.job import AGENT_TYPE, TERMINAL
from draftsman.people.actor import Actor
from draftsman.questions.question import Question
from draftsman_bots.conversation import job_controls
from draftsman_bots.conversation.parser import ParsedText
from draftsman_bots.trello import ids
from draftsman_bots.trello.actions import Action, ActionKind
from draftsman_bots.trello.deliveries.error_text import error_text

if TYPE_CHECKING:
    from draftsman.people.spans import Spans
    from draftsman.questions.answer import Verdict
    from draftsman_bots.trello.context import BotContext


Sent = tuple[int, "str | Spans", str]
"""The job, the reply, and the outcome for a counter."""


def is_message(comment: ParsedText, action: Action, questions: Sequence[Question]) -> bool:
    """Return whether a comment that no open question accepts is meant for the agent.

    A comment that was written while a question was open is a late answer.
    """
    if comment.verb == "tell":
        return True
    if not comment.explicit or comment.decision is not None or comment.question is not None:
        return False
    late = (
        question.answered_at is not None
        and action.date is not None
        and question.answered_at >= action.date
        for question in questions
    )
    return bool(comment.answer) and not any(late)


async def send(
    context: BotContext, action: Action, actor: Actor, comment: ParsedText, jobs: Sequence[int]
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
        sent = await context.rt.messages.send(job.number, actor, comment.answer, event=key)
    except (Refused, UsageError) as error:
        return job.number, error_text(error), "rejected"
    return job.number, f"{sent}.", "message_sent"


# Comments that pause, resume or cancel the card's job.


OUTCOMES: Final = {"pause": "job_paused", "resume": "job_resumed", "cancel": "job_canceled"}
"""Outcomes of comments, for a counter."""


async def change(
    context: BotContext, action: Action, actor: Actor, comment: ParsedText, jobs: Sequence[int]
) -> tuple[int, str | None, str]:
    """Change the job of a card; return it, the reply, and the outcome for a counter.

    The job's own notice on the card shows a change, without another reply. A comment that arrives
    twice, by webhook and poll, changes the job once.
    """
    jobs_of_card = [await context.rt.read_model.job(number) for number in jobs]
    live = [job.number for job in jobs_of_card if job.status not in TERMINAL]
    job = comment.job or (live or list(jobs))[0]
    if action.kind is ActionKind.COMMENT_EDITED:
        text = f"an edit does not {comment.verb} {job_name(job)}; write another comment."
        return job, text, "replied"
    try:
        await job_controls.change(context.rt, job, actor, comment, ids.action_key(action.comment))
    except (NotPermitted, Refused, UsageError) as error:
        return job, error_text(error), "rejected"
    return job, None, OUTCOMES[comment.verb]


# Replies on a card to an action of a person.


async def reply(
    context: BotContext,
    action: Action,
    job: int,
    actor: Actor,
    text: str | Spans,
    outcome: str = "replied",
) -> str:
    """Post a reply on the card, once for each action; return the outcome for a counter."""
    at = parse(ids.card_target(action.card))
    spans = (text,) if isinstance(text, str) else text
    key = f"comment:{action.id}"
    await context.rt.outbox.notice(job, key, (f"{actor.display_name}: ", *spans), at=at)
    return outcome


def verdict_text(verdict: Verdict) -> str | Spans:
    """Return why a response was not accepted, or that its vote was counted."""
    if not verdict.accepted:
        reason = verdict.reason_spans or ("it was rejected",)
        return "Your answer was not accepted: ", *reason, "."
    return f"{verdict.name}: your approval was recorded, {verdict.votes} of {verdict.quorum}."
