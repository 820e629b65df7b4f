"""Replies in the thread of a job as answers; the question is never guessed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from draftsman.errors import LostRace, NotPermitted
from draftsman.questions.question import Question, QuestionStatus
from draftsman_bots.conversation.answers import (
    AnswerOutcome,
    AnswerResolution,
    ApprovalDecision,
    accepting_questions,
    build_response,
    names_choice,
    resolve_answer,
)
from draftsman_bots.conversation.parser import ParsedText
from draftsman_bots.slack.deliveries.blocks import actions, button, section
from draftsman_bots.slack.deliveries.mrkdwn import escape_truncated
from draftsman_bots.slack.deliveries.render import BOT_NAME
from draftsman_bots.slack.ephemeral import Reply
from draftsman_bots.slack.ids import FREE, answer_value
from draftsman_bots.slack.jobs import thread_messages
from draftsman_bots.slack.payloads.payloads import MessageChange
from draftsman_bots.slack.people.access import authorize, may_answer
from draftsman_bots.slack.questions import answers
from draftsman_bots.slack.questions.backfill import closed_since

if TYPE_CHECKING:
    from draftsman.people.actor import Actor
    from draftsman.questions.answer import Verdict
    from draftsman_bots.slack.context import BotContext
    from draftsman_bots.slack.payloads.payloads import MessageEvent

NOT_AN_ANSWER: Final = Reply("")
"""The thread belongs to no job."""
HINT_WINDOW: Final = 600.0
"""Seconds within which a message outside the thread may answer a question."""
_TS: Final = re.compile(r"[0-9]{1,12}\.[0-9]{1,8}")


async def handle_reply(
    ctx: BotContext, message: MessageEvent, parsed: ParsedText, *, backfilled: bool = False
) -> Reply | None:
    """Submit a reply as an answer to its thread's question; return the reply to its author.

    A reply that answers none is a message to the agent of the thread's job, unless it is
    `backfilled`. Raises LostRace while the thread's job is not known yet.
    """
    questions = await _thread_questions(ctx, message)
    if questions is None:
        await _check_posted(ctx, message)
        return NOT_AN_ANSWER
    answered = await _answered_by(ctx, message, questions)
    is_late = any(closed_since(question, message.ts) for question in questions)
    questions = answered or _drop_later(message, questions)
    result = resolve_answer(parsed.answer or None, parsed.decision, questions, prefer_text=True)
    if (
        result.outcome in (AnswerOutcome.NOT_AN_ANSWER, AnswerOutcome.CLOSED)
        and result.decision is None
        and not (answered or is_late or backfilled)
    ):
        reply = await thread_messages.handle_message(ctx, message)
        if reply is not thread_messages.NOT_A_MESSAGE:
            return reply
    if result.outcome is AnswerOutcome.NOT_AN_ANSWER:
        return None
    if result.outcome is AnswerOutcome.CLOSED:
        return await _late_reply(ctx, message, parsed, result)
    actor = await authorize(ctx, message.user)
    match result.outcome:
        case AnswerOutcome.WRONG_KIND:
            return _wrong_kind_reply(ctx, actor, message, result)
        case AnswerOutcome.NO_TEXT:
            return Reply("A file is not an answer. Reply with text or with the name of a choice.")
        case AnswerOutcome.AMBIGUOUS:
            return _choose_question_reply(ctx, actor, parsed.answer, result.questions)
    verdict = await _submit(
        ctx, actor, (message.key, parsed.answer), result.decision, result.questions[0]
    )
    return await answers.unshown_reply(ctx, result.questions[0].job, verdict)


async def questions_for(ctx: BotContext, message: MessageEvent, parsed: ParsedText) -> list[str]:
    """Return the names of the questions that a mention in a thread answers.

    Those are the thread's open questions that accept the text, or the question that this message
    has answered: a mention is delivered twice. A command with a slash or a name has none.
    """
    if not parsed.doubtful:
        return []
    questions = await _thread_questions(ctx, message) or []
    if answered := await _answered_by(ctx, message, questions):
        return [question.name for question in answered]
    questions = _drop_later(message, questions)
    open_questions = [question for question in questions if question.status is QuestionStatus.OPEN]
    return [question.name for question in accepting_questions(open_questions, parsed.answer)]


async def is_of_job(ctx: BotContext, message: MessageEvent) -> bool:
    """Return whether the thread of a message belongs to a job; raises LostRace if that is open."""
    if await _thread_questions(ctx, message) is not None:
        return True
    await _check_posted(ctx, message)
    return False


async def record_edit(ctx: BotContext, message: MessageEvent) -> bool:
    """Record the edit or deletion of an accepted answer; return whether it was an answer."""
    if not message.thread:
        return False
    for question in await _answered_by(ctx, message, await _thread_questions(ctx, message) or ()):
        actor = await authorize(ctx, message.user)
        job = question.job
        ordinal = question.ordinal
        if message.change is MessageChange.EDITED:
            await ctx.rt.threads.edited(job, ordinal, message.key, actor, message.text)
        else:
            await ctx.rt.threads.deleted(job, ordinal, message.key, actor)
        return True
    return False


async def open_question_names(ctx: BotContext, message: MessageEvent) -> list[str]:
    """Return the names of the thread's open questions."""
    questions = await _thread_questions(ctx, message) or ()
    return [question.name for question in questions if question.status is QuestionStatus.OPEN]


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
        for question in await ctx.rt.threads.open_questions_in(target, HINT_WINDOW)
    ]
    permitted = [question for question in questions if await may_answer(ctx, actor, question)]
    if not permitted or not ctx.background.first(("hint", permitted[0].name, actor.id)):
        return None
    names = ", ".join(question.name for question in permitted)
    return Reply(f"To answer {names}, reply in its thread or use its buttons.")


async def _thread_questions(ctx: BotContext, message: MessageEvent) -> list[Question] | None:
    """Return the questions of a thread, None if it belongs to no job."""
    if not _TS.fullmatch(message.thread):
        return None
    topics = await ctx.rt.threads.slack(message.channel, message.thread)
    if not topics:
        return None
    questions: list[Question] = []
    for topic in topics:
        of_job, _ = await ctx.rt.questions.of_job(topic.job)
        questions += [question for question in of_job if topic.question in (None, question.ordinal)]
    return questions


async def _answered_by(
    ctx: BotContext, message: MessageEvent, questions: Sequence[Question]
) -> list[Question]:
    """Return the questions that this message has answered, for repeated deliveries."""
    answered: list[Question] = []
    for job in sorted({question.job for question in questions}):
        _, responses = await ctx.rt.questions.of_job(job)
        ordinals = {
            response.question for response in responses if response.source_event_id == message.key
        }
        answered += [
            question
            for question in questions
            if question.job == job and question.ordinal in ordinals
        ]
    return answered


def _drop_later(message: MessageEvent, questions: list[Question]) -> list[Question]:
    """Drop the questions asked after the message, if it may have answered a closed question.

    A late delivery must not answer a question that was asked after the message was posted.
    """
    try:
        written = datetime.fromtimestamp(float(message.ts), UTC)
    except (ValueError, OverflowError, OSError):
        return questions
    if not any(closed_since(question, message.ts) for question in questions):
        return questions
    return [question for question in questions if question.asked_at <= written]


async def _check_posted(ctx: BotContext, message: MessageEvent) -> None:
    """Raise LostRace if the thread may begin with a message that is not recorded yet.

    Slack delivers the reply again; the thread is known by then.
    """
    if message.parent not in ("", ctx.identity.bot_user) or not _TS.fullmatch(message.thread):
        return
    targets = [message.channel, message.user.id] if message.private else [message.channel]
    if await ctx.rt.threads.has_pending_message(targets, message.thread):
        raise LostRace("the parent message is still being posted")


async def _late_reply(
    ctx: BotContext, message: MessageEvent, parsed: ParsedText, result: AnswerResolution
) -> Reply | None:
    """Return why a reply came too late, once for each person; other talk is ignored."""
    if not parsed.answer or message.change is not MessageChange.POSTED:
        return None
    latest = max(
        result.questions, key=lambda question: (question.asked_at, question.job, question.ordinal)
    )
    if _is_talk(message, parsed, latest, result.decision):
        return None
    actor = await authorize(ctx, message.user)
    _, responses = await ctx.rt.questions.of_job(latest.job)
    if any(
        response.question == latest.ordinal and response.voter == actor.voter
        for response in responses
    ):
        return None
    verdict = await _submit(ctx, actor, (message.key, parsed.answer), result.decision, latest)
    return await answers.reply_to(ctx, latest.job, verdict)


def _is_talk(
    message: MessageEvent,
    parsed: ParsedText,
    question: Question,
    decision: ApprovalDecision | None,
) -> bool:
    """Return whether a reply was written after the answer, and is none itself: `thanks`."""
    is_answered = question.status is QuestionStatus.ANSWERED
    is_late = closed_since(question, message.ts)
    return (
        is_answered
        and not is_late
        and decision is None
        and not names_choice(question, parsed.answer)
    )


async def _submit(
    ctx: BotContext,
    actor: Actor,
    keyed: tuple[str, str],
    decision: ApprovalDecision | None,
    question: Question,
) -> Verdict:
    """Submit a text with its key, or the decision that it is."""
    key, text = keyed
    if decision is None:
        response = build_response(key, text=text)
    else:
        response = build_response(key, decision=decision.approved, reason=decision.reason)
    return await answers.submit_answer(ctx, actor, question.job, question.ordinal, response)


def _wrong_kind_reply(
    ctx: BotContext, actor: Actor, message: MessageEvent, result: AnswerResolution
) -> Reply | None:
    """Return, once, which kind of answer is needed."""
    question = result.questions[0]
    if not ctx.background.first(("misfit", question.name, actor.id)):
        return None
    if result.decision is not None:
        return Reply(
            f"{question.name} is a question, not an approval: reply with an answer or choose one."
        )
    prefix = "" if ctx.identity.reads_replies or message.private else f"{BOT_NAME} "
    return Reply(
        f"{question.name} needs a decision: reply `{prefix}approve` or `{prefix}deny REASON`, or"
        " use its buttons."
    )


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
