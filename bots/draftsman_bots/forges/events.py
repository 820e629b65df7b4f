"""Events of issues and pull requests that concern people: requests, answers and messages."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from draftsman.forges.api.connection import forge_at
from draftsman.forges.forge_event import EventKind, is_resolved, labeled
from draftsman_bots.conversation.commands import About
from draftsman_bots.conversation.parser import FORGE, parse
from draftsman_bots.conversation.resolution import Outcome
from draftsman_bots.forges.context import OtherAccount
from draftsman_bots.forges.controls import is_for_bot, reply_text
from draftsman_bots.forges.questions import IGNORED, on_comment
from draftsman_bots.forges.replies import reply_without_job
from draftsman_bots.forges.requests import request_job

if TYPE_CHECKING:
    from draftsman.forges.forge_event import ForgeEvent
    from draftsman_bots.forges.context import EventContext

ANSWERED_IN: Final = frozenset({EventKind.ISSUE_COMMENT, EventKind.ANSWER})
"""Kinds of events whose text may answer a question."""


async def on_event(context: EventContext) -> str:
    """Process an event; return its outcome: `submitted`, `answered`, `refused` or `ignored`."""
    try:
        return await _on_event(context)
    except OtherAccount as error:
        await reply_without_job(context, str(error))
        return "refused"


async def _on_event(context: EventContext) -> str:
    event = context.event
    if event.is_own or event.is_bot:
        return IGNORED
    if event.kind is EventKind.LABELED_ISSUE:
        label = context.settings.issue_label
        if label is None or (event.label or "").casefold() != label.casefold():
            return IGNORED
        return await request_job(await _with_labeling(context, label))
    if event.kind not in ANSWERED_IN:
        return IGNORED
    comment = parse(event.text, FORGE, name=context.settings.mention)
    if comment is None:
        return IGNORED
    if text := reply_text(comment):
        await reply_without_job(context, text)
        return "answered"
    if not is_for_bot(comment):
        return IGNORED
    outcome, resolved = await on_comment(context, comment)
    is_text = comment.command is None or comment.command.about is About.REQUEST
    is_unused = resolved.outcome in (Outcome.MESSAGE, Outcome.TALK, Outcome.COMMAND)
    if not (is_text and is_unused and comment.addressed) or comment.decision or comment.job:
        return outcome
    return await request_job(context, comment) if event.kind is EventKind.ISSUE_COMMENT else IGNORED


async def _with_labeling(context: EventContext, label: str) -> EventContext:
    """Return the context with the event that gave the label, which a webhook does not name."""
    event = context.event
    if not is_resolved(event):
        forge = forge_at(context.rt.settings, context.forge, event.project)
        event = labeled(event, await forge.events().labelings(event.number, label))
    return replace(context, event=replace(event, author=event.author or "unknown"))


def classify(event: ForgeEvent, mention: str) -> ForgeEvent:
    """Return a comment on a pull request as an answer, if a command answers or controls a job.

    Other comments there are feedback on the work. An event keeps its key.
    """
    if event.kind is not EventKind.COMMENT:
        return event
    comment = parse(event.text, FORGE, name=mention)
    if comment is None or not comment.explicit:
        return event
    about = comment.command.about if comment.command else About.QUESTION
    is_answer = about is About.QUESTION and (
        comment.question is not None
        or comment.decision is not None
        or (comment.addressed and bool(comment.verb))
    )
    is_command = about not in (About.QUESTION, About.REQUEST) and is_for_bot(comment)
    return replace(event, kind=EventKind.ANSWER) if is_answer or is_command else event
