"""Replies in the thread of a job: which question they answer is never guessed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from draftsman.domain.answer import read
from draftsman.domain.question import Question, QuestionKind, QuestionStatus
from draftsman.errors import LostRace, NotPermitted, UsageError
from draftsman_bots.slack.asking import NAME
from draftsman_bots.slack.blocks import actions, button, section
from draftsman_bots.slack.catchup import closed_since
from draftsman_bots.slack.grammar import Wish
from draftsman_bots.slack.ids import FREE, answer_value
from draftsman_bots.slack.inbound import Change
from draftsman_bots.slack.listeners import answers
from draftsman_bots.slack.listeners.people import admit, may_answer
from draftsman_bots.slack.listeners.whisper import Said
from draftsman_bots.slack.text import escaped

if TYPE_CHECKING:
    from draftsman.domain.actor import Actor
    from draftsman.domain.answer import Response
    from draftsman_bots.slack.grammar import Request, Unclear
    from draftsman_bots.slack.inbound import Message
    from draftsman_bots.slack.listeners.desk import Desk

NOT_ABOUT_US: Final = Said("")
"""The thread is about no job."""
LATELY: Final = 600.0
"""Seconds in which a message beside the thread may be meant for a question."""
_ANSWERS: Final = frozenset({"answer", "approve", "deny"})
_JOB: Final = re.compile("[dD]-")
_TS: Final = re.compile(r"[0-9]{1,12}\.[0-9]{1,8}")
_APPROVE: Final = re.compile(r"\s*approve\s*", re.IGNORECASE)
_DENY: Final = re.compile(r"\s*deny(?:\s+(.*))?", re.IGNORECASE | re.DOTALL)


async def reply(desk: Desk, message: Message) -> Said | None:
    """Take a reply as an answer to what its thread asks; return what its writer is told.

    Raises LostRace while it is not known what the thread is about.
    """
    asked = await _asked(desk, message)
    if asked is None:
        await _check_posted(desk, message)
        return NOT_ABOUT_US
    asked = await _handed_in(desk, message, asked) or _asked_before(message, asked)
    waiting = [one for one in asked if one.status is QuestionStatus.OPEN]
    if not waiting:
        return await _late(desk, message, asked)
    actor = await admit(desk, message.who)
    given = _decision(message)
    words = _taking(waiting, message)
    if given is not None and words and not any(one.kind is QuestionKind.APPROVAL for one in asked):
        given = None  # nothing here can be approved: the word is an answer
    kind = QuestionKind.INPUT if given is None else QuestionKind.APPROVAL
    fitting = [one for one in waiting if one.kind is kind]
    if not fitting:
        return _misfit(desk, actor, message, waiting[0], decides=given is not None)
    if not message.text.strip():
        return Said("A file alone is no answer: say it in words, or name a choice.")
    if given is None and words:
        fitting = words
    if len(fitting) > 1:
        return _which(desk, actor, message, fitting)
    if given is None:
        given = answers.response(message.key, text=message.text)
    verdict = await answers.hand_in(desk, actor, fitting[0].job, fitting[0].ordinal, given)
    return answers.worded(verdict, message.who.id) if answers.is_news(verdict) else None


async def questions_for(
    desk: Desk, message: Message, parsed: Request | Wish | Unclear
) -> list[str]:
    """Return the names of the questions that words after a mention answer, command or not.

    Those are the open questions of the thread that take the words, or the one that this message
    answered before: a mention comes twice. An answer or a decision that names its question is none.
    """
    named = isinstance(parsed, Wish) and parsed.verb in _ANSWERS and _JOB.match(parsed.ref)
    if named or not message.text.strip():
        return []
    asked = await _asked(desk, message) or []
    if before := await _handed_in(desk, message, asked):
        return [one.name for one in before]
    asked = _asked_before(message, asked)
    taking = _taking([one for one in asked if one.status is QuestionStatus.OPEN], message)
    return [one.name for one in taking]


async def touched(desk: Desk, message: Message) -> bool:
    """Note that an answer was edited or deleted after it counted; return whether it was one."""
    if not message.thread:
        return False
    for question in await _handed_in(desk, message, await _asked(desk, message) or ()):
        actor = await admit(desk, message.who)
        name = (question.job, question.ordinal, message.key, actor)
        if message.change is Change.EDITED:
            await desk.rt.threads.edited(*name, message.text)
        else:
            await desk.rt.threads.deleted(*name)
        return True
    return False


async def waiting(desk: Desk, message: Message) -> list[str]:
    """Return the names of the open questions of this thread."""
    asked = await _asked(desk, message) or ()
    return [one.name for one in asked if one.status is QuestionStatus.OPEN]


async def hint(desk: Desk, message: Message) -> Said | None:
    """Say once that a message beside the thread of an open question does not answer it."""
    if message.thread or message.change is not Change.POSTED or not message.text:
        return None
    try:
        actor = await admit(desk, message.who, message.channel)
    except NotPermitted:
        return None
    if actor.person is None:
        return None
    places = {message.channel, message.who.id} if message.private else {message.channel}
    asked = [one for p in sorted(places) for one in await desk.rt.threads.asked_in(p, LATELY)]
    mine = [one for one in asked if await may_answer(desk, actor, one)]
    if not mine or not desk.aside.first(("hint", mine[0].name, actor.id)):
        return None
    names = ", ".join(one.name for one in mine)
    return Said(f"If that was meant for {names}: reply in its thread, or use its buttons.")


async def _asked(desk: Desk, message: Message) -> list[Question] | None:
    """Return the questions that a thread is about, None where it is about no job."""
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


async def _handed_in(desk: Desk, message: Message, asked: Sequence[Question]) -> list[Question]:
    """Return the questions that this message was handed in to: delivered again, it means them."""
    found: list[Question] = []
    for job in sorted({one.job for one in asked}):
        _, given = await desk.rt.questions.of_job(job)
        meant = {one.question for one in given if one.source_event_id == message.key}
        found += [one for one in asked if one.job == job and one.ordinal in meant]
    return found


def _asked_before(message: Message, asked: list[Question]) -> list[Question]:
    """Return the questions that a message may mean: after one that was open then, none later.

    A reply that arrives late must not answer a question that was asked after it was written.
    """
    try:
        written = datetime.fromtimestamp(float(message.ts), UTC)
    except (ValueError, OverflowError, OSError):
        return asked
    if not any(closed_since(one, message.ts) for one in asked):
        return asked
    return [one for one in asked if one.asked_at <= written]


def _taking(asked: Sequence[Question], message: Message) -> list[Question]:
    """Return the questions that these words can answer: a choice, or free text where allowed."""
    return [
        one for one in asked if one.kind is QuestionKind.INPUT and _is_answer(one, message.text)
    ]


def _is_answer(question: Question, text: str) -> bool:
    try:
        read(question, answers.response("words", text=text))
    except UsageError:
        return False
    return True


async def _check_posted(desk: Desk, message: Message) -> None:
    """Raise LostRace where the thread may be that of a message of ours not written down yet.

    Slack delivers the reply again; by then it is known what it is about.
    """
    if message.parent not in ("", desk.identity.bot_user) or not _TS.fullmatch(message.thread):
        return
    places = [message.channel, message.who.id] if message.private else [message.channel]
    if await desk.rt.threads.on_its_way(places, message.thread):
        raise LostRace("the message that this replies to is just being posted")


async def _late(desk: Desk, message: Message, asked: list[Question]) -> Said | None:
    """Say why a reply came too late, once to each person; talk among people is left alone."""
    given = _decision(message)
    kind = QuestionKind.INPUT if given is None else QuestionKind.APPROVAL
    closed = [one for one in asked if one.kind is kind]
    if not closed or not message.text.strip() or message.change is not Change.POSTED:
        return None
    last = max(closed, key=lambda one: (one.asked_at, one.job, one.ordinal))
    actor = await admit(desk, message.who)
    _, before = await desk.rt.questions.of_job(last.job)
    if any(one.question == last.ordinal and one.voter == actor.voter for one in before):
        return None
    given = given or answers.response(message.key, text=message.text)
    verdict = await answers.hand_in(desk, actor, last.job, last.ordinal, given)
    return answers.worded(verdict, message.who.id)


def _decision(message: Message) -> Response | None:
    """Read exactly `approve`, or `deny` with or without a reason."""
    if _APPROVE.fullmatch(message.text):
        return answers.response(message.key, decision=True)
    if match := _DENY.fullmatch(message.text):
        return answers.response(
            message.key, decision=False, reason=(match[1] or "").strip() or None
        )
    return None


def _misfit(
    desk: Desk, actor: Actor, message: Message, question: Question, *, decides: bool
) -> Said | None:
    """Say once what kind of answer is wanted."""
    if not desk.aside.first(("misfit", question.name, actor.id)):
        return None
    if decides:
        return Said(f"{question.name} is a question: say or choose an answer.")
    call = "" if desk.identity.reads_replies or message.private else f"{NAME} "
    return Said(
        f"Words do not decide {question.name}: write `{call}approve`, or `{call}deny` and why, or"
        " use its buttons."
    )


def _which(desk: Desk, actor: Actor, message: Message, asked: list[Question]) -> Said:
    """Ask which question was meant; the answer is written into the window that opens."""
    for one in asked:
        desk.aside.keep((actor.id, one.job, one.ordinal), message.text)
    said = "Which question does that answer?"
    lines = [f"*{one.name}* {escaped(one.text, 300)}" for one in asked[:5]]
    pressed = [
        button(one.name, f"{FREE}:{place}", answer_value(one.job, one.ordinal))
        for place, one in enumerate(asked[:5])
    ]
    return Said(said, [section("\n".join([said, *lines])), actions(pressed)])
