"""Comments on cards: answers, commands, and messages to agents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from draftsman.people.actor import Actor
from draftsman_bots.conversation.commands import About, Surface, help_text, unavailable
from draftsman_bots.conversation.parser import REPLY, ParsedText, is_attachment_only, parse
from draftsman_bots.conversation.places import load_place
from draftsman_bots.conversation.replies import KnownAuthor, ReplyKind, TextReply, Wording, respond
from draftsman_bots.conversation.resolution import (
    Change,
    Outcome,
    Place,
    Resolved,
    Talk,
    WrittenText,
    resolve,
)
from draftsman_bots.trello import ids
from draftsman_bots.trello.actions import Action, ActionKind
from draftsman_bots.trello.deliveries.error_text import error_text
from draftsman_bots.trello.deliveries.markdown import marker_of
from draftsman_bots.trello.replies import OUTCOMES, reply
from draftsman_bots.trello.requests import edit_notices

if TYPE_CHECKING:
    from datetime import datetime

    from draftsman.errors import DraftsmanError
    from draftsman.people.spans import Spans
    from draftsman.questions.question import Question
    from draftsman_bots.trello.context import BotContext

CONVERSATION: Final = "conversation"
"""Outcome of a comment that is part of a conversation among people."""
WORDING: Final = Wording(Surface.REPLY)
CHANGES: Final = {
    ActionKind.COMMENT: Change.POSTED,
    ActionKind.COMMENT_EDITED: Change.EDITED,
    ActionKind.COMMENT_DELETED: Change.DELETED,
}


class CardConversation(KnownAuthor):
    """A comment and its author."""

    def error_spans(self, error: DraftsmanError) -> Spans:
        """Return an error with a comment or command that helps."""
        return (error_text(error),)


async def on_comment(context: BotContext, action: Action) -> str:
    """Process a new, edited or deleted comment; return its outcome, for a counter."""
    if await _is_own(context, action):
        return "own"
    actor = await context.rt.people.actor(
        Actor("trello", action.member, action.name or action.member)
    )
    place = await _place(context, action, actor)
    if not place.jobs:
        return "ignored"
    parsed = parse(action.text, REPLY, name=context.me.username)
    is_edit = action.kind is ActionKind.COMMENT_EDITED
    text = WrittenText(
        parsed=parsed,
        key=ids.action_key(action.comment),
        version=ids.edit_key(action.comment, action.id) if is_edit else "",
        written=action.date,
        change=CHANGES[action.kind],
        is_file=parsed is not None and is_attachment_only(parsed.answer),
    )
    resolved = resolve(text, place)
    if resolved.answer is not None or resolved.outcome is Outcome.REPEATED:
        await _record_change(context, action, actor, resolved)
        return "change_recorded"
    outcome = await _process(context, action, text, place, resolved, actor)
    if outcome is None:
        outcome = "ignored" if parsed is None else CONVERSATION
        if is_edit:
            return await edit_notices.notify_request_edited(context, action) or outcome
    return outcome


async def _is_own(context: BotContext, action: Action) -> bool:
    """Return whether the bot wrote the comment: by its account, its marker or its delivery."""
    if action.member == context.me.id or marker_of(action.text) is not None:
        return True
    return await context.rt.threads.is_own_message("trello", action.comment)


async def _place(context: BotContext, action: Action, author: Actor) -> Place:
    """Return the card with its jobs, and the questions posted there."""
    copies = await context.rt.threads.place("trello", action.card)
    posted = {(copy.job, copy.question): copy.ref for copy in copies if copy.question is not None}

    def since(question: Question) -> datetime:
        ref = posted[question.job, question.ordinal]
        return ids.created_at(ref) if ref and ids.is_id(ref) else question.asked_at

    return await load_place(
        context.rt,
        Talk.PERMITTED,
        author,
        [copy.job for copy in copies],
        lambda question: (question.job, question.ordinal) in posted,
        since,
    )


async def _record_change(
    context: BotContext, action: Action, actor: Actor, resolved: Resolved
) -> None:
    """Record that an accepted answer was edited or deleted; reply to an edit."""
    answer = resolved.answer
    if answer is None:
        return
    named = (answer.job, answer.question, answer.source_event_id, actor)
    if resolved.outcome is Outcome.ANSWER_DELETED:
        await context.rt.threads.deleted(*named)
    elif await context.rt.threads.edited(*named, action.text):
        question = f"D-{answer.job}/{answer.question}"
        await edit_notices.notify_answer_edited(context, action, actor, question, answer.job)


async def _process(
    context: BotContext,
    action: Action,
    text: WrittenText,
    place: Place,
    resolved: Resolved,
    actor: Actor,
) -> str | None:
    """Submit or execute a comment, and reply; None for a conversation among people."""
    parsed = text.parsed
    if parsed is None:
        return None
    here = [job.number for job in place.jobs]
    if words := _words(parsed, resolved, here):
        return await reply(context, action, here[0], actor, words)
    if resolved.outcome is Outcome.WRONG_KIND and not resolved.is_certain:
        first = ("wrong_kind", resolved.questions[0].name, actor.voter)
        if not context.background.first(first):
            return None
    conversation = CardConversation(context.rt, actor, WORDING)
    result = await respond(conversation, text, place, resolved)
    if result is None:
        return None
    return await _reply(context, action, actor, parsed, result)


def _words(parsed: ParsedText, resolved: Resolved, here: list[int]) -> str:
    """Return the reply to a command that is not executed on the card."""
    command = parsed.command
    if parsed.job is not None and parsed.job not in here:
        return f"D-{parsed.job} is not a job of this card."
    if command is None or resolved.outcome is not Outcome.COMMAND:
        return ""
    if Surface.REPLY not in command.surfaces:
        return unavailable(command, Surface.REPLY)
    return help_text(Surface.REPLY) if command.about is About.NOTHING else ""


async def _reply(
    context: BotContext, action: Action, actor: Actor, parsed: ParsedText, result: TextReply
) -> str:
    """Reply on the card, where the comments of the question and of the job show a change."""
    outcome = OUTCOMES[parsed.verb] if result.kind is ReplyKind.CHANGED else str(result.kind)
    if result.kind is ReplyKind.CHANGED or not result.text or result.job is None:
        return outcome
    return await reply(context, action, result.job, actor, result.spans, outcome)
