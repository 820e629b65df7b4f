"""Replies in the thread of a job as answers; the question is never guessed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from draftsman.domain.answer import parse_answer
from draftsman.domain.question import Question, QuestionKind, QuestionStatus
from draftsman.errors import LostRace, NotPermitted, UsageError
from draftsman_bots.slack.ids import FREE, answer_value
from draftsman_bots.slack.mrkdwn import escape_truncated
from draftsman_bots.slack.outbound.blocks import actions, button, section
from draftsman_bots.slack.outbound.question_blocks import BOT_NAME
from draftsman_bots.slack.parsers.command_parser import TextCommand
from draftsman_bots.slack.parsers.payloads import MessageChange
from draftsman_bots.slack.usecases import answers
from draftsman_bots.slack.usecases.access import authorize, may_answer
from draftsman_bots.slack.usecases.backfill import closed_since
from draftsman_bots.slack.usecases.ephemeral import Reply

if TYPE_CHECKING:
    from draftsman.domain.answer import Response
    from draftsman.domain.people.actor import Actor
    from draftsman_bots.slack.context import BotContext
    from draftsman_bots.slack.parsers.command_parser import InvalidText, JobRequest
    from draftsman_bots.slack.parsers.payloads import MessageEvent

NOT_AN_ANSWER: Final = Reply("")
"""The thread belongs to no job."""
LATELY: Final = 600.0
"""Seconds within which a message outside the thread may answer a question."""
_ANSWERS: Final = frozenset({"answer", "approve", "deny"})
_JOB: Final = re.compile("[dD]-")
_TS: Final = re.compile(r"[0-9]{1,12}\.[0-9]{1,8}")
_APPROVE: Final = re.compile(r"\s*approve\s*", re.IGNORECASE)
_DENY: Final = re.compile(r"\s*deny(?:\s+(.*))?", re.IGNORECASE | re.DOTALL)


async def handle_reply(desk: BotContext, message: MessageEvent) -> Reply | None:
    """Submit a reply as an answer to its thread's question; return the reply to its author.

    Raises LostRace while the thread's job is not known yet.
    """
    asked = await _asked(desk, message)
    if asked is None:
        await _check_posted(desk, message)
        return NOT_AN_ANSWER
    asked = await _handed_in(desk, message, asked) or _asked_before(message, asked)
    waiting = [one for one in asked if one.status is QuestionStatus.OPEN]
    if not waiting:
        return await _late(desk, message, asked)
    actor = await authorize(desk, message.who)
    given = _decision(message)
    words = _taking(waiting, message)
    if given is not None and words and not any(one.kind is QuestionKind.APPROVAL for one in asked):
        given = None  # nothing here can be approved: the word is an answer
    kind = QuestionKind.INPUT if given is None else QuestionKind.APPROVAL
    fitting = [one for one in waiting if one.kind is kind]
    if not fitting:
        return _misfit(desk, actor, message, waiting[0], decides=given is not None)
    if not message.text.strip():
        return Reply("A file is not an answer. Reply with text or with the name of a choice.")
    if given is None and words:
        fitting = words
    if len(fitting) > 1:
        return _which(desk, actor, message, fitting)
    if given is None:
        given = answers.build_response(message.key, text=message.text)
    verdict = await answers.submit_answer(desk, actor, fitting[0].job, fitting[0].ordinal, given)
    return (
        answers.verdict_reply(verdict, message.who.id)
        if answers.is_new_to_reader(verdict)
        else None
    )


async def questions_for(
    desk: BotContext, message: MessageEvent, parsed: JobRequest | TextCommand | InvalidText
) -> list[str]:
    """Return the names of the questions that a mention in a thread answers.

    Those are the thread's open questions that accept the text, or the question that this message
    has answered: a mention is delivered twice. An answer or decision that names its question has
    none.
    """
    named = isinstance(parsed, TextCommand) and parsed.verb in _ANSWERS and _JOB.match(parsed.ref)
    if named or not message.text.strip():
        return []
    asked = await _asked(desk, message) or []
    if before := await _handed_in(desk, message, asked):
        return [one.name for one in before]
    asked = _asked_before(message, asked)
    taking = _taking([one for one in asked if one.status is QuestionStatus.OPEN], message)
    return [one.name for one in taking]


async def record_edit(desk: BotContext, message: MessageEvent) -> bool:
    """Record the edit or deletion of an accepted answer; return whether it was an answer."""
    if not message.thread:
        return False
    for question in await _handed_in(desk, message, await _asked(desk, message) or ()):
        actor = await authorize(desk, message.who)
        name = (question.job, question.ordinal, message.key, actor)
        if message.change is MessageChange.EDITED:
            await desk.rt.threads.edited(*name, message.text)
        else:
            await desk.rt.threads.deleted(*name)
        return True
    return False


async def waiting(desk: BotContext, message: MessageEvent) -> list[str]:
    """Return the names of the thread's open questions."""
    asked = await _asked(desk, message) or ()
    return [one.name for one in asked if one.status is QuestionStatus.OPEN]


async def thread_hint(desk: BotContext, message: MessageEvent) -> Reply | None:
    """Return a hint, once, that a message outside of a question's thread does not answer it."""
    if message.thread or message.change is not MessageChange.POSTED or not message.text:
        return None
    try:
        actor = await authorize(desk, message.who, message.channel)
    except NotPermitted:
        return None
    if actor.person is None:
        return None
    places = {message.channel, message.who.id} if message.private else {message.channel}
    asked = [
        one for p in sorted(places) for one in await desk.rt.threads.open_questions_in(p, LATELY)
    ]
    mine = [one for one in asked if await may_answer(desk, actor, one)]
    if not mine or not desk.background.first(("hint", mine[0].name, actor.id)):
        return None
    names = ", ".join(one.name for one in mine)
    return Reply(f"To answer {names}, reply in its thread or use its buttons.")


async def _asked(desk: BotContext, message: MessageEvent) -> list[Question] | None:
    """Return the questions of a thread, None if it belongs to no job."""
    if not _TS.fullmatch(message.thread):
        return None
    topics = await desk.rt.threads.slack(message.channel, message.thread)
    if not topics:
        return None
    found: list[Question] = []
    for topic in topics:
        asked, _ = await desk.rt.questions.of_job(topic.job)
        found += [one for one in asked if topic.question in (None, one.ordinal)]
    return found


async def _handed_in(
    desk: BotContext, message: MessageEvent, asked: Sequence[Question]
) -> list[Question]:
    """Return the questions that this message has answered, for repeated deliveries."""
    found: list[Question] = []
    for job in sorted({one.job for one in asked}):
        _, given = await desk.rt.questions.of_job(job)
        meant = {one.question for one in given if one.source_event_id == message.key}
        found += [one for one in asked if one.job == job and one.ordinal in meant]
    return found


def _asked_before(message: MessageEvent, asked: list[Question]) -> list[Question]:
    """Drop the questions asked after the message, if it may have answered a closed question.

    A late delivery must not answer a question that was asked after the message was posted.
    """
    try:
        written = datetime.fromtimestamp(float(message.ts), UTC)
    except (ValueError, OverflowError, OSError):
        return asked
    if not any(closed_since(one, message.ts) for one in asked):
        return asked
    return [one for one in asked if one.asked_at <= written]


def _taking(asked: Sequence[Question], message: MessageEvent) -> list[Question]:
    """Return the questions that accept this text: as a choice, or as free text."""
    return [
        one for one in asked if one.kind is QuestionKind.INPUT and _is_answer(one, message.text)
    ]


def _is_answer(question: Question, text: str) -> bool:
    try:
        parse_answer(question, answers.build_response("words", text=text))
    except UsageError:
        return False
    return True


async def _check_posted(desk: BotContext, message: MessageEvent) -> None:
    """Raise LostRace if the thread may begin with a message that is not recorded yet.

    Slack delivers the reply again; the thread is known by then.
    """
    if message.parent not in ("", desk.identity.bot_user) or not _TS.fullmatch(message.thread):
        return
    places = [message.channel, message.who.id] if message.private else [message.channel]
    if await desk.rt.threads.has_pending_message(places, message.thread):
        raise LostRace("the parent message is still being posted")


async def _late(desk: BotContext, message: MessageEvent, asked: list[Question]) -> Reply | None:
    """Return why a reply came too late, once for each person; other talk is ignored."""
    given = _decision(message)
    kind = QuestionKind.INPUT if given is None else QuestionKind.APPROVAL
    closed = [one for one in asked if one.kind is kind]
    if not closed or not message.text.strip() or message.change is not MessageChange.POSTED:
        return None
    last = max(closed, key=lambda one: (one.asked_at, one.job, one.ordinal))
    actor = await authorize(desk, message.who)
    _, before = await desk.rt.questions.of_job(last.job)
    if any(one.question == last.ordinal and one.voter == actor.voter for one in before):
        return None
    given = given or answers.build_response(message.key, text=message.text)
    verdict = await answers.submit_answer(desk, actor, last.job, last.ordinal, given)
    return answers.verdict_reply(verdict, message.who.id)


def _decision(message: MessageEvent) -> Response | None:
    """Parse exactly `approve`, or `deny` with an optional reason."""
    if _APPROVE.fullmatch(message.text):
        return answers.build_response(message.key, decision=True)
    if match := _DENY.fullmatch(message.text):
        return answers.build_response(
            message.key, decision=False, reason=(match[1] or "").strip() or None
        )
    return None


def _misfit(
    desk: BotContext, actor: Actor, message: MessageEvent, question: Question, *, decides: bool
) -> Reply | None:
    """Return, once, which kind of answer is needed."""
    if not desk.background.first(("misfit", question.name, actor.id)):
        return None
    if decides:
        return Reply(
            f"{question.name} is a question, not an approval: reply with an answer or choose one."
        )
    call = "" if desk.identity.reads_replies or message.private else f"{BOT_NAME} "
    return Reply(
        f"{question.name} needs a decision: reply `{call}approve` or `{call}deny REASON`, or use"
        " its buttons."
    )


def _which(desk: BotContext, actor: Actor, message: MessageEvent, asked: list[Question]) -> Reply:
    """Ask which question the reply answers; its text is the draft in the modal."""
    for one in asked:
        desk.background.save_draft((actor.id, one.job, one.ordinal), message.text)
    said = "Which question does this answer?"
    lines = [f"*{one.name}* {escape_truncated(one.text, 300)}" for one in asked[:5]]
    pressed = [
        button(one.name, f"{FREE}:{place}", answer_value(one.job, one.ordinal))
        for place, one in enumerate(asked[:5])
    ]
    return Reply(said, [section("\n".join([said, *lines])), actions(pressed)])
