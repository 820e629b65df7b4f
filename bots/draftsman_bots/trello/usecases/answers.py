"""Comments answer what a card is asked; which question they mean is never guessed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from draftsman import field_errors
from draftsman.domain import answer as reading
from draftsman.domain.answer import Response, Verdict
from draftsman.domain.job import Source
from draftsman.domain.messages.plain_text import already_recorded
from draftsman.domain.messages.target import parse
from draftsman.domain.people.actor import Actor
from draftsman.domain.question import Question, QuestionKind, QuestionStatus
from draftsman.errors import NotPermitted, UsageError
from draftsman_bots.trello import ids
from draftsman_bots.trello.markdown import marker_of
from draftsman_bots.trello.parsers import comment_parser
from draftsman_bots.trello.parsers.actions import Action, ActionKind
from draftsman_bots.trello.parsers.comment_parser import ParsedComment
from draftsman_bots.trello.usecases import edit_notices

if TYPE_CHECKING:
    from draftsman_bots.trello.context import BotContext

OPEN: Final = QuestionStatus.OPEN
ANSWER: Final = "answer"
_NUMBER: Final = re.compile(r"[0-9]{1,3}[.)]?")


async def on_comment(desk: BotContext, action: Action) -> str:
    """Take a comment, or what became of one; return what it was, for a counter."""
    if await _is_own(desk, action):
        return "own"
    copies = await desk.rt.threads.trello(action.card)
    jobs = sorted({copy.job for copy in copies}, reverse=True)
    if not jobs:
        return "ignored"
    actor = await desk.rt.people.actor(
        Actor(Source.TRELLO, action.member, action.name or action.member)
    )
    if action.kind is not ActionKind.COMMENT and await _touched(desk, jobs, action, actor):
        return "noted"
    if action.kind is ActionKind.COMMENT_DELETED:
        return "ignored"
    outcome = "ignored"
    if word := comment_parser.parse(action.text, desk.me.username):
        asked = await _asked(desk, action, jobs)
        outcome = await _answer(desk, action, actor, word, asked, jobs)
    if action.kind is ActionKind.COMMENT_EDITED and outcome in ("ignored", "talk"):
        return await edit_notices.notify_request_edited(desk, action) or outcome
    return outcome


async def _is_own(desk: BotContext, action: Action) -> bool:
    """Return whether the bot itself said it: by its account, by its marker, by what was kept."""
    if action.member == desk.me.id or marker_of(action.text) is not None:
        return True
    return await desk.rt.threads.is_own_comment(action.comment)


async def _touched(desk: BotContext, jobs: list[int], action: Action, actor: Actor) -> bool:
    """Note that an answer was edited or deleted after it counted; return whether it was one."""
    key = ids.action_key(action.comment)
    for job in jobs:
        _, given = await desk.rt.questions.of_job(job)
        for one in given:
            if not one.accepted or not _of_comment(one.source_event_id, key):
                continue
            if one.source_event_id == ids.edit_key(action.comment, action.id):
                return True  # told once more: it is this change that counted
            name = (job, one.question, one.source_event_id, actor)
            if action.kind is ActionKind.COMMENT_EDITED:
                if await desk.rt.threads.edited(*name, action.text):
                    await edit_notices.notify_answer_edited(
                        desk, action, actor, f"D-{job}/{one.question}", job
                    )
            else:
                await desk.rt.threads.deleted(*name)
            return True
    return False


def _of_comment(event: str, key: str) -> bool:
    return event == key or event.startswith(f"{key}:")


async def _asked(desk: BotContext, action: Action, jobs: list[int]) -> list[Question]:
    """Return what was asked on the card before this was said, the newest first."""
    copies = await desk.rt.threads.trello(action.card)
    shown = {(copy.job, copy.question): copy for copy in copies if copy.question is not None}
    found = []
    for job in jobs:
        for question in (await desk.rt.questions.of_job(job))[0]:
            copy = shown.get((job, question.ordinal))
            if copy is None:
                continue
            since = (
                ids.created_at(copy.ref) if ids.is_id(copy.ref) and copy.ref else question.asked_at
            )
            if action.date is None or action.date >= since:
                found.append(question)
    return sorted(found, key=lambda one: (one.job, one.ordinal), reverse=True)


async def _answer(
    desk: BotContext,
    action: Action,
    actor: Actor,
    word: ParsedComment,
    asked: list[Question],
    jobs: list[int],
) -> str:
    if word.job is not None and word.job not in jobs:
        text = f"D-{word.job} asks nothing on this card."
        return await _say(desk, action, jobs[0], actor, text)
    questions = [one for one in asked if word.job in (None, one.job)]
    if word.question is not None:
        questions = [one for one in questions if one.ordinal == word.question]
    waiting = [one for one in questions if one.status is OPEN]
    if not waiting:
        return await _late(desk, action, actor, word, questions)
    kind = QuestionKind.INPUT if word.decision is None else QuestionKind.APPROVAL
    fitting = [one for one in waiting if one.kind is kind]
    if not fitting:
        return await _misfit(desk, action, actor, word, waiting[0])
    if not await _is_meant(desk, actor, word, fitting):
        return "talk"
    if comment_parser.is_attachment_only(word.text) or not (word.text or word.decision is not None):
        text = f"{fitting[0].name}: a file alone is no answer: say it in words, or name a choice."
        return await _say(desk, action, fitting[0].job, actor, text)
    if len(fitting) > 1:
        names = ", ".join(one.name for one in fitting)
        verb = ANSWER if word.decision is None else ("approve" if word.decision else "deny")
        text = f"Which question does that answer: {names}? Write /{verb} {fitting[0].name} …"
        return await _say(desk, action, fitting[0].job, actor, text)
    return await _hand_in(desk, action, actor, word, fitting[0])


async def _hand_in(
    desk: BotContext, action: Action, actor: Actor, word: ParsedComment, question: Question
) -> str:
    """Hand it in, and say what became of it where the question's own comment does not."""
    try:
        given = _response(action, word, question)
        verdict = await desk.rt.questions.answer(question.job, question.ordinal, given, actor)
    except UsageError as error:
        return await _say(desk, action, question.job, actor, str(error))
    if verdict.accepted and (verdict.resolved or verdict.duplicate):
        return "answer"
    if verdict.recorded:
        return await _say(desk, action, question.job, actor, already_recorded(verdict), "recorded")
    return await _say(desk, action, question.job, actor, _worded(verdict), "refused")


def _response(action: Action, word: ParsedComment, question: Question) -> Response:
    """Return what is handed in; raises UsageError in one line."""
    key = ids.action_key(action.comment)
    if action.kind is ActionKind.COMMENT_EDITED:
        key = ids.edit_key(action.comment, action.id)
    fields = (
        {"text": word.line if _names(question, word.line) else word.text}
        if word.decision is None
        else {"decision": word.decision, "reason": word.reason}
    )
    try:
        return Response.model_validate({"source_event_id": key} | fields)
    except ValidationError as error:
        name, problem = field_errors.first_error(error)
        raise UsageError(f"{question.name}: the {name or ANSWER} {problem}") from None


async def _is_meant(
    desk: BotContext, actor: Actor, word: ParsedComment, asked: list[Question]
) -> bool:
    """Return whether words are an answer, or talk among people that is left alone.

    An answer mentions the bot, is a decision or a number, or names a choice. Other words answer a
    free-text question whose answer their writer may give.
    """
    if word.mentioned or word.decision is not None or _NUMBER.fullmatch(word.text):
        return True
    if any(_names(question, word.line) for question in asked):
        return True
    free = [question for question in asked if question.freeform_allowed]
    return any([await _may_answer(desk, actor, question) for question in free])


async def _may_answer(desk: BotContext, actor: Actor, question: Question) -> bool:
    invoker = (await desk.rt.read_model.job(question.job)).invoker_id
    try:
        desk.rt.policy.check_answer(actor, question.approvers, invoker=invoker)
    except NotPermitted:
        return False
    return True


def _names(question: Question, line: str) -> bool:
    """Return whether a line names a choice."""
    try:
        given = Response(source_event_id="line", text=line)
        return reading.parse_answer(question, given).value is not None
    except (UsageError, ValidationError):
        return False


async def _late(
    desk: BotContext, action: Action, actor: Actor, word: ParsedComment, asked: list[Question]
) -> str:
    """Say why an answer came too late; talk among people is left alone."""
    kind = QuestionKind.INPUT if word.decision is None else QuestionKind.APPROVAL
    closed = [one for one in asked if one.kind is kind]
    if not closed:
        return "talk"
    last = closed[0]
    meant = word.mentioned or word.decision is not None or _names(last, word.line)
    if not meant or await _settled_before(desk, last, actor, action):
        return "talk"
    return await _hand_in(desk, action, actor, word, last)


async def _settled_before(
    desk: BotContext, question: Question, actor: Actor, action: Action
) -> bool:
    """Return whether this comment counts already, or an earlier one of the person was refused."""
    key = ids.action_key(action.comment)
    _, given = await desk.rt.questions.of_job(question.job)
    return any(
        one.question == question.ordinal
        and one.voter == actor.voter
        and one.accepted == _of_comment(one.source_event_id, key)
        for one in given
    )


async def _misfit(
    desk: BotContext, action: Action, actor: Actor, word: ParsedComment, question: Question
) -> str:
    """Say once what kind of answer is wanted."""
    if not word.mentioned and word.decision is None and not _looks_like_one(word):
        return "talk"
    if question.kind is QuestionKind.INPUT:
        text = f"{question.name} is a question: say or choose an answer."
    else:
        text = f"Words do not decide {question.name}: write approve, or deny and why."
    if not desk.background.first(("misfit", question.name, actor.voter)):
        return "talk"
    return await _say(desk, action, question.job, actor, text)


def _looks_like_one(word: ParsedComment) -> bool:
    """Return whether somebody may think that this decides."""
    return word.text.strip().casefold() in {"yes", "no", "ok", "okay", "approved", "denied", "y"}


def _worded(verdict: Verdict) -> str:
    if not verdict.accepted:
        return f"That did not count: {verdict.reason or 'it was refused'}."
    return f"{verdict.name}: your approval counts, {verdict.votes} of {verdict.quorum}."


async def _say(
    desk: BotContext, action: Action, job: int, actor: Actor, text: str, outcome: str = "told"
) -> str:
    """Tell whoever commented, on the card, once for the comment as it was then."""
    at = parse(ids.card_target(action.card))
    key = f"comment:{action.id}"
    await desk.rt.outbox.notice(job, key, f"{actor.display_name}: {text}", at=at)
    return outcome
