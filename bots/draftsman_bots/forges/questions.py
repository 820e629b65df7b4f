"""Answers to questions in the comments of an issue or pull request; none is guessed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from draftsman.deliveries.plain_text import already_recorded
from draftsman.errors import NotPermitted, Refused, UsageError
from draftsman_bots.conversation import attention as attention_commands
from draftsman_bots.conversation.answers import (
    AnswerOutcome,
    build_response,
    is_shown_by_question,
    names_choice,
    resolve_answer,
)
from draftsman_bots.conversation.job_controls import pause_note
from draftsman_bots.conversation.parser import ATTENTION
from draftsman_bots.forges.replies import reply

if TYPE_CHECKING:
    from draftsman.people.actor import Actor
    from draftsman.people.spans import Spans
    from draftsman.questions.answer import Verdict
    from draftsman.questions.question import Question
    from draftsman.questions.response import Response
    from draftsman_bots.conversation.parser import ParsedText
    from draftsman_bots.forges.context import EventContext

IGNORED: Final = "ignored"
_NUMBER: Final = re.compile(r"[0-9]{1,3}[.)]?")


async def on_answer(context: EventContext, comment: ParsedText) -> str:
    """Submit the answer of a comment; return `answered`, `refused`, or `ignored` if it is none."""
    copies = await context.rt.threads.forge(context.issue.target)
    posted = {(copy.job, copy.question) for copy in copies if copy.question is not None}
    questions = await _questions(context, posted)
    chosen = [question for question in questions if comment.job in (None, question.job)]
    if comment.question is not None:
        chosen = [question for question in chosen if question.ordinal == comment.question]
    if comment.job is not None and not chosen:
        if not copies:
            return IGNORED
        name = f"D-{comment.job}" + (f"/{comment.question}" if comment.question else "")
        return await _refuse(context, copies[0].job, f"{name} was not asked here.")
    if comment.verb in ATTENTION:
        return await _attend(context, comment, chosen)
    has_text = comment.answer or comment.decision is not None
    text_or_none = comment.answer if has_text else None
    result = resolve_answer(text_or_none, comment.decision, chosen, prefer_text=False)
    if result.outcome is AnswerOutcome.NOT_AN_ANSWER:
        return IGNORED
    first = result.questions[0]
    if not _is_answer(comment, result.questions):
        return IGNORED
    match result.outcome:
        case AnswerOutcome.CLOSED if not _is_late(context, comment, result.questions):
            return IGNORED
        case AnswerOutcome.SUBMIT | AnswerOutcome.CLOSED:
            return await _submit(context, comment, first)
        case AnswerOutcome.NO_TEXT:
            return await _refuse(context, first.job, f"{first.name} needs text or a choice.")
        case AnswerOutcome.WRONG_KIND:
            needs = "text or a choice" if comment.decision else "/approve, or /deny and a reason"
            return await _refuse(context, first.job, f"{first.name} needs {needs}.")
        case _:
            names = ", ".join(question.name for question in result.questions)
            verb = comment.decision.verb if comment.decision is not None else "answer"
            text = f"Which question does this answer: {names}? Write /{verb} {first.name} …"
            return await _refuse(context, first.job, text)


async def _attend(context: EventContext, comment: ParsedText, questions: Sequence[Question]) -> str:
    """Acknowledge, snooze or delegate the question of a comment, and confirm it."""
    question = attention_commands.chosen_question(questions, comment.job, comment.question)
    if question is None:
        if not questions:
            return IGNORED
        names = ", ".join(other.name for other in questions)
        text = f"name an open question: /{comment.verb} QUESTION; asked here: {names}."
        return await _refuse(context, questions[0].job, text)
    actor = await context.actor()
    named = (question.job, question.ordinal)
    try:
        attended = await attention_commands.execute(
            context.rt, actor, comment.verb, named, comment.line
        )
    except (NotPermitted, Refused, UsageError) as error:
        return await _refuse(context, question.job, str(error))
    await reply(context, question.job, attended.text())
    return "answered"


async def _questions(context: EventContext, posted: set[tuple[int, int]]) -> list[Question]:
    """Return the questions that were posted here, newest first."""
    questions: list[Question] = []
    for job in sorted({job for job, _ in posted}, reverse=True):
        of_job, _ = await context.rt.questions.of_job(job)
        questions += [question for question in of_job if (job, question.ordinal) in posted]
    return sorted(questions, key=lambda question: (question.job, question.ordinal), reverse=True)


def _is_answer(comment: ParsedText, questions: Sequence[Question]) -> bool:
    """Return whether a comment is an answer, not a conversation among people.

    An answer mentions the bot, has a command, is a decision or a number, or names a choice. A
    comment with an unknown command, `@draftsman /paus`, is none.
    """
    if any(names_choice(question, comment.answer_line) for question in questions):
        return True
    if comment.unknown:
        return False
    return bool(
        comment.explicit or comment.decision is not None or _NUMBER.fullmatch(comment.answer)
    )


def _is_late(context: EventContext, comment: ParsedText, questions: Sequence[Question]) -> bool:
    """Return whether a comment answers a closed question, and is not about something new.

    It names the question or a choice, decides, or was written before the question was answered.
    """
    if comment.question is not None or comment.decision is not None:
        return True
    if _NUMBER.fullmatch(comment.answer):
        return True
    if any(names_choice(question, comment.answer_line) for question in questions):
        return True
    at = context.event.at
    ends = [question.answered_at for question in questions if question.answered_at is not None]
    return at is not None and any(at <= end for end in ends)


async def _submit(context: EventContext, comment: ParsedText, question: Question) -> str:
    """Submit the answer, and reply where the question's own comment does not show the result."""
    actor = await context.actor()
    if actor.person is None and not comment.explicit:
        return IGNORED  # a stranger who names a choice
    try:
        response = _response(context, comment, question)
        verdict = await context.rt.questions.answer(question.job, question.ordinal, response, actor)
    except UsageError as error:
        return await _refuse(context, question.job, str(error))
    return await _report(context, question, verdict, actor)


async def _report(context: EventContext, question: Question, verdict: Verdict, actor: Actor) -> str:
    if is_shown_by_question(verdict):
        note = await pause_note(
            context.rt, question.job, verdict, f"draftsman resume D-{question.job}"
        )
        if note:
            await reply(context, question.job, note)
        return "answered"
    if verdict.recorded:
        await reply(context, question.job, already_recorded(verdict))
        return "answered"
    if verdict.accepted:
        votes = f"your approval was recorded, {verdict.votes} of {verdict.quorum}."
        await reply(context, question.job, f"{verdict.name}: {votes}")
        return "answered"
    reason = verdict.reason_spans or ("it was rejected",)
    unmapped = f" ({actor.id} is not mapped to a person)" if actor.person is None else ""
    return await _refuse(
        context, question.job, ("Your answer was not accepted: ", *reason, f"{unmapped}.")
    )


def _response(context: EventContext, comment: ParsedText, question: Question) -> Response:
    """Return the response to submit; raises UsageError."""
    key = context.key[-500:]
    if (decision := comment.decision) is not None:
        fields = {"decision": decision.approved, "reason": decision.reason}
        return build_response(key, question.name, **fields)
    text = comment.answer_line if names_choice(question, comment.answer_line) else comment.answer
    return build_response(key, question.name, text=text)


async def _refuse(context: EventContext, job: int, text: str | Spans) -> str:
    await reply(context, job, text)
    return "refused"
