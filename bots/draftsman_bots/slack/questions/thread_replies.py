"""Texts in the thread of a job: answers, commands and messages to its agent."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from draftsman.errors import LostRace, NotPermitted
from draftsman.questions.question import Question
from draftsman_bots.conversation.parser import ParsedText, parse_slack
from draftsman_bots.conversation.places import load_place
from draftsman_bots.conversation.replies import respond
from draftsman_bots.conversation.resolution import (
    Change,
    Outcome,
    Place,
    Resolved,
    Talk,
    WrittenText,
    resolve,
)
from draftsman_bots.slack.deliveries.blocks import actions, button, section
from draftsman_bots.slack.deliveries.mrkdwn import escape_truncated
from draftsman_bots.slack.deliveries.render import BOT_NAME
from draftsman_bots.slack.ephemeral import Reply, spoken
from draftsman_bots.slack.ids import FREE, answer_value
from draftsman_bots.slack.jobs import thread_messages
from draftsman_bots.slack.payloads.payloads import MessageChange
from draftsman_bots.slack.people.access import SlackConversation, authorize, may_answer
from draftsman_bots.slack.records.service import SlackThreads

if TYPE_CHECKING:
    from draftsman.people.actor import Actor
    from draftsman_bots.slack.context import BotContext
    from draftsman_bots.slack.payloads.payloads import MessageEvent

HINT_WINDOW: Final = 600.0
"""Seconds within which a message outside the thread may answer a question."""
_TS: Final = re.compile(r"[0-9]{1,12}\.[0-9]{1,8}")
CHANGES: Final = {
    MessageChange.POSTED: Change.POSTED,
    MessageChange.EDITED: Change.EDITED,
    MessageChange.DELETED: Change.DELETED,
}


@dataclass(frozen=True, slots=True)
class ThreadText:
    """A message in the thread of a job, and for which question or job it is."""

    text: WrittenText
    parsed: ParsedText
    place: Place
    resolved: Resolved


async def resolve_message(ctx: BotContext, message: MessageEvent) -> ThreadText | None:
    """Resolve a message in a thread; None if no job has the thread.

    Raises LostRace while the thread's job is not known yet.
    """
    if not _TS.fullmatch(message.thread):
        return None
    topics = await SlackThreads(ctx.rt).topics(message.channel, message.thread)
    if not topics:
        await _check_posted(ctx, message)
        return None
    asked = {topic.job: topic.question for topic in topics}
    place = await load_place(
        ctx.rt,
        Talk.ALL,
        await ctx.rt.people.actor(message.user.actor(ctx.company)),
        asked,
        lambda question: asked[question.job] in (None, question.ordinal),
    )
    parsed = parse_slack(message.text, addressed=message.mentioned)
    text = WrittenText(
        parsed=parsed,
        key=message.key,
        version=message.version,
        written=_time_of(message.ts),
        change=CHANGES[message.change],
        is_file=not message.text.strip(),
    )
    return ThreadText(text, parsed, place, resolve(text, place))


async def reply_to(ctx: BotContext, message: MessageEvent, found: ThreadText) -> Reply | None:
    """Submit the answer of a text that is no command; return the reply to its author."""
    resolved = found.resolved
    match resolved.outcome:
        case Outcome.REPEATED:
            return None
        case Outcome.MESSAGE:
            reply = await thread_messages.handle_message(ctx, message)
            return reply if reply is not thread_messages.NOT_A_MESSAGE else None
        case Outcome.ANSWER_EDITED | Outcome.ANSWER_DELETED:
            return await _record_change(ctx, message, resolved)
        case Outcome.AMBIGUOUS if resolved.text:
            actor = await authorize(ctx, message.user)
            return _choose_question_reply(ctx, actor, resolved.text, resolved.questions)
        case Outcome.WRONG_KIND if not resolved.is_certain:
            actor = await authorize(ctx, message.user)
            if not ctx.background.first(("misfit", resolved.questions[0].name, actor.id)):
                return None
    is_read = ctx.identity.reads_replies or message.private
    mention = "" if is_read else f"{BOT_NAME} "
    conversation = SlackConversation(ctx, message.user, mention=mention)
    return spoken(await respond(conversation, found.text, found.place, resolved))


async def _record_change(
    ctx: BotContext, message: MessageEvent, resolved: Resolved
) -> Reply | None:
    """Record the edit or deletion of an accepted answer."""
    answer = resolved.answer
    if answer is None:
        return None
    actor = await authorize(ctx, message.user)
    named = (answer.job, answer.question, answer.source_event_id, actor)
    if resolved.outcome is Outcome.ANSWER_EDITED:
        await ctx.rt.threads.edited(*named, message.text)
    else:
        await ctx.rt.threads.deleted(*named)
    return None


def _time_of(ts: str) -> datetime | None:
    try:
        return datetime.fromtimestamp(float(ts), UTC)
    except (ValueError, OverflowError, OSError):
        return None


async def thread_hint(ctx: BotContext, message: MessageEvent) -> Reply | None:
    """Return a hint, once, that a message outside of a question's thread does not answer it."""
    if message.thread or message.change is not MessageChange.POSTED or not message.text:
        return None
    try:
        actor = await authorize(ctx, message.user, message.channel)
    except NotPermitted:
        return None
    if actor.person is None:
        return None
    targets = {message.channel, message.user.id} if message.private else {message.channel}
    questions = [
        question
        for target in sorted(targets)
        for question in await SlackThreads(ctx.rt).open_questions_in(target, HINT_WINDOW)
    ]
    permitted = [question for question in questions if await may_answer(ctx, actor, question)]
    if not permitted or not ctx.background.first(("hint", permitted[0].name, actor.id)):
        return None
    names = ", ".join(question.name for question in permitted)
    return Reply(f"To answer {names}, reply in its thread or use its buttons.")


async def _check_posted(ctx: BotContext, message: MessageEvent) -> None:
    """Raise LostRace if the thread may begin with a message that is not recorded yet.

    Slack delivers the reply again; the thread is known by then.
    """
    if message.parent not in ("", ctx.identity.bot_user) or not _TS.fullmatch(message.thread):
        return
    targets = [message.channel, message.user.id] if message.private else [message.channel]
    if await SlackThreads(ctx.rt).has_pending_message(targets, message.thread):
        raise LostRace("the parent message is still being posted")


def _choose_question_reply(
    ctx: BotContext, actor: Actor, text: str, questions: Sequence[Question]
) -> Reply:
    """Ask which question the reply answers; its text is the draft in the modal."""
    for question in questions:
        ctx.background.save_draft((actor.id, question.job, question.ordinal), text)
    prompt = "Which question does this answer?"
    lines = [
        f"*{question.name}* {escape_truncated(question.text, 300)}" for question in questions[:5]
    ]
    buttons = [
        button(question.name, f"{FREE}:{number}", answer_value(question.job, question.ordinal))
        for number, question in enumerate(questions[:5])
    ]
    return Reply(prompt, [section("\n".join([prompt, *lines])), actions(buttons)])
