"""Answers to a card's questions from its comments; an ambiguous comment is never guessed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from draftsman.deliveries.plain_text import already_recorded
from draftsman.errors import NotPermitted, Refused, UsageError
from draftsman.jobs.job import Source
from draftsman.people.actor import Actor
from draftsman.questions.question import Question, QuestionKind
from draftsman.questions.response import Response
from draftsman.questions.rights import check_response
from draftsman_bots.conversation import attention as attention_commands
from draftsman_bots.conversation.answers import (
    AnswerOutcome,
    build_response,
    is_shown_by_question,
    names_choice,
    resolve_answer,
)
from draftsman_bots.conversation.commands import (
    About,
    Surface,
    command_names,
    help_text,
    unavailable,
)
from draftsman_bots.conversation.job_controls import pause_note
from draftsman_bots.conversation.parser import (
    ATTENTION,
    TRELLO,
    ParsedText,
    is_attachment_only,
    parse,
)
from draftsman_bots.trello import ids
from draftsman_bots.trello.actions import Action, ActionKind
from draftsman_bots.trello.deliveries.error_text import error_text
from draftsman_bots.trello.deliveries.markdown import marker_of
from draftsman_bots.trello.jobs import card_messages
from draftsman_bots.trello.jobs.card_messages import reply, verdict_text
from draftsman_bots.trello.requests import edit_notices

if TYPE_CHECKING:
    from draftsman_bots.trello.context import BotContext

CONVERSATION: Final = "conversation"
"""Outcome of a comment that is part of a conversation among people."""
_ANSWERS: Final = ("", "answer", "approve", "deny")
_NUMBER: Final = re.compile(r"[0-9]{1,3}[.)]?")


async def on_comment(context: BotContext, action: Action) -> str:
    """Process a new, edited or deleted comment; return its outcome, for a counter."""
    if await _is_own(context, action):
        return "own"
    copies = await context.rt.threads.trello(action.card)
    jobs = sorted({copy.job for copy in copies}, reverse=True)
    if not jobs:
        return "ignored"
    actor = await context.rt.people.actor(
        Actor(Source.TRELLO, action.member, action.name or action.member)
    )
    if action.kind is not ActionKind.COMMENT and await _record_answer_change(
        context, jobs, action, actor
    ):
        return "change_recorded"
    if action.kind is ActionKind.COMMENT_DELETED:
        return "ignored"
    outcome = "ignored"
    if comment := parse(action.text, TRELLO, name=context.me.username):
        outcome = await _answer(context, action, actor, comment, jobs)
    if action.kind is ActionKind.COMMENT_EDITED and outcome in ("ignored", CONVERSATION):
        return await edit_notices.notify_request_edited(context, action) or outcome
    return outcome


async def _is_own(context: BotContext, action: Action) -> bool:
    """Return whether the bot wrote the comment: by its account, its marker or its delivery."""
    if action.member == context.me.id or marker_of(action.text) is not None:
        return True
    return await context.rt.threads.is_own_comment(action.comment)


async def _record_answer_change(
    context: BotContext, jobs: list[int], action: Action, actor: Actor
) -> bool:
    """Record that an accepted answer was edited or deleted; return whether it was an answer."""
    key = ids.action_key(action.comment)
    for job in jobs:
        _, answers = await context.rt.questions.of_job(job)
        for answer in answers:
            if not answer.accepted or not _of_comment(answer.source_event_id, key):
                continue
            if answer.source_event_id == ids.edit_key(action.comment, action.id):
                return True  # a repeated webhook: this edit was the accepted answer
            event = answer.source_event_id
            if action.kind is ActionKind.COMMENT_EDITED:
                if await context.rt.threads.edited(job, answer.question, event, actor, action.text):
                    await edit_notices.notify_answer_edited(
                        context, action, actor, f"D-{job}/{answer.question}", job
                    )
            else:
                await context.rt.threads.deleted(job, answer.question, event, actor)
            return True
    return False


def _of_comment(event: str, key: str) -> bool:
    return event == key or event.startswith(f"{key}:")


async def _questions_before(context: BotContext, action: Action, jobs: list[int]) -> list[Question]:
    """Return the questions posted on the card before this comment, newest first."""
    copies = await context.rt.threads.trello(action.card)
    posted = {(copy.job, copy.question): copy for copy in copies if copy.question is not None}
    questions = []
    for job in jobs:
        for question in (await context.rt.questions.of_job(job))[0]:
            copy = posted.get((job, question.ordinal))
            if copy is None:
                continue
            since = (
                ids.created_at(copy.ref) if ids.is_id(copy.ref) and copy.ref else question.asked_at
            )
            if action.date is None or action.date >= since:
                questions.append(question)
    return sorted(questions, key=lambda question: (question.job, question.ordinal), reverse=True)


async def _answer(
    context: BotContext, action: Action, actor: Actor, comment: ParsedText, jobs: list[int]
) -> str:
    questions = await _questions_before(context, action, jobs)
    if comment.job is not None and comment.job not in jobs:
        text = f"D-{comment.job} has no question on this card."
        return await reply(context, action, jobs[0], actor, text)
    if comment.verb not in _ANSWERS:
        return await _execute(context, action, actor, comment, questions, jobs)
    questions = [question for question in questions if comment.job in (None, question.job)]
    if comment.question is not None:
        questions = [question for question in questions if question.ordinal == comment.question]
    is_file = is_attachment_only(comment.answer)
    has_text = not is_file and (comment.answer or comment.decision is not None)
    text_or_none = comment.answer if has_text else None
    result = resolve_answer(text_or_none, comment.decision, questions, prefer_text=False)
    closed = result.outcome in (AnswerOutcome.NOT_AN_ANSWER, AnswerOutcome.CLOSED)
    if (
        closed
        and card_messages.is_message(comment, action, questions)
        and (outcome := await _send(context, action, actor, comment, jobs)) != CONVERSATION
    ):
        return outcome
    if result.outcome is AnswerOutcome.NOT_AN_ANSWER:
        return CONVERSATION
    first = result.questions[0]
    if result.outcome is AnswerOutcome.CLOSED:
        return await _answer_closed(context, action, actor, comment, first)
    if result.outcome is AnswerOutcome.WRONG_KIND:
        return await _reply_wrong_kind(context, action, actor, comment, first)
    if not await _is_answer(context, actor, comment, result.questions):
        if comment.unknown and await _may_answer(context, actor, first):
            text = (
                f"/{comment.unknown} is no command; commands: {command_names(Surface.TRELLO)}. To"
                f" answer with this text: /answer {first.name} /{comment.unknown} …"
            )
            return await reply(context, action, first.job, actor, text)
        return CONVERSATION
    if result.outcome is AnswerOutcome.SUBMIT:
        return await _submit(context, action, actor, comment, first)
    if result.outcome is AnswerOutcome.NO_TEXT:
        text = (
            f"{first.name} was not answered: a file is not an answer. Reply with text or a choice."
        )
    else:
        names = ", ".join(question.name for question in result.questions)
        verb = comment.decision.verb if comment.decision is not None else "answer"
        text = f"Which question does this answer: {names}? Write /{verb} {first.name} …"
    return await reply(context, action, first.job, actor, text)


async def _execute(
    context: BotContext,
    action: Action,
    actor: Actor,
    comment: ParsedText,
    questions: Sequence[Question],
    jobs: list[int],
) -> str:
    """Execute a command that is no answer."""
    command = comment.command
    if command is not None and Surface.TRELLO not in command.surfaces:
        return await reply(context, action, jobs[0], actor, unavailable(command, Surface.TRELLO))
    if command is not None and command.about is About.NOTHING:
        return await reply(context, action, jobs[0], actor, help_text(Surface.TRELLO))
    if comment.verb in ATTENTION:
        return await _attend(context, action, actor, comment, questions, jobs[0])
    if comment.verb == "tell":
        return await _send(context, action, actor, comment, jobs)
    job, text, outcome = await card_messages.change(context, action, actor, comment, jobs)
    if text is None:
        return outcome
    return await reply(context, action, job, actor, text, outcome)


async def _attend(
    context: BotContext,
    action: Action,
    actor: Actor,
    comment: ParsedText,
    questions: Sequence[Question],
    job: int,
) -> str:
    """Acknowledge, snooze or delegate the question of a comment, and confirm it."""
    question = attention_commands.chosen_question(questions, comment.job, comment.question)
    if question is None or action.kind is ActionKind.COMMENT_EDITED:
        example = f"/{comment.verb} D-{comment.job or job}/1"
        text = f"write another comment that names an open question of this card: {example}"
        return await reply(context, action, job, actor, text)
    named = question.job, question.ordinal
    try:
        attended = await attention_commands.execute(
            context.rt, actor, comment.verb, named, comment.line
        )
    except (NotPermitted, Refused, UsageError) as error:
        return await reply(context, action, question.job, actor, error_text(error), "rejected")
    return await reply(context, action, question.job, actor, attended.text(), "attended")


async def _send(
    context: BotContext, action: Action, actor: Actor, comment: ParsedText, jobs: list[int]
) -> str:
    """Send the comment to the agent of the card's job, and confirm it."""
    sent = await card_messages.send(context, action, actor, comment, jobs)
    if sent is None:
        return CONVERSATION
    job, text, outcome = sent
    return await reply(context, action, job, actor, text, outcome)


async def _submit(
    context: BotContext, action: Action, actor: Actor, comment: ParsedText, question: Question
) -> str:
    """Submit the answer, and reply where the question's own comment does not show the result."""
    try:
        response = _response(action, comment, question)
        verdict = await context.rt.questions.answer(question.job, question.ordinal, response, actor)
    except UsageError as error:
        return await reply(context, action, question.job, actor, error_text(error))
    if is_shown_by_question(verdict):
        note = await pause_note(context.rt, question.job, verdict, f"/resume D-{question.job}")
        if note:
            return await reply(context, action, question.job, actor, note, "answered")
        return "answered"
    if verdict.recorded:
        text = already_recorded(verdict)
        return await reply(context, action, question.job, actor, text, "already_recorded")
    return await reply(context, action, question.job, actor, verdict_text(verdict), "rejected")


def _response(action: Action, comment: ParsedText, question: Question) -> Response:
    """Return the response to submit; raises UsageError with a one-line message."""
    key = ids.action_key(action.comment)
    if action.kind is ActionKind.COMMENT_EDITED:
        key = ids.edit_key(action.comment, action.id)
    if (decision := comment.decision) is not None:
        fields = {"decision": decision.approved, "reason": decision.reason}
        return build_response(key, question.name, **fields)
    text = comment.answer_line if names_choice(question, comment.answer_line) else comment.answer
    return build_response(key, question.name, text=text)


async def _is_answer(
    context: BotContext, actor: Actor, comment: ParsedText, questions: Sequence[Question]
) -> bool:
    """Return whether a comment is an answer, not a conversation among people.

    An answer mentions the bot, is a decision or a number, or names a choice. Any other text answers
    a free-text question if its author may answer it, unless it looks like a command: `/paus`.
    """
    if any(names_choice(question, comment.answer_line) for question in questions):
        return True
    if comment.unknown:
        return False
    if comment.explicit or comment.decision is not None or _NUMBER.fullmatch(comment.answer):
        return True
    free = [question for question in questions if question.freeform_allowed]
    return any([await _may_answer(context, actor, question) for question in free])


async def _may_answer(context: BotContext, actor: Actor, question: Question) -> bool:
    invoker = (await context.rt.read_model.job(question.job)).invoker_id
    try:
        check_response(context.rt.policy, actor, question, invoker=invoker)
    except NotPermitted:
        return False
    return True


async def _answer_closed(
    context: BotContext, action: Action, actor: Actor, comment: ParsedText, question: Question
) -> str:
    """Reply why an answer came too late; ignore conversations among people."""
    addressed = comment.explicit or comment.decision is not None
    if not (addressed or names_choice(question, comment.answer_line)):
        return CONVERSATION
    if await _settled_before(context, question, actor, action):
        return CONVERSATION
    return await _submit(context, action, actor, comment, question)


async def _settled_before(
    context: BotContext, question: Question, actor: Actor, action: Action
) -> bool:
    """Return whether this comment was accepted, or the person's earlier answer was rejected."""
    key = ids.action_key(action.comment)
    _, answers = await context.rt.questions.of_job(question.job)
    return any(
        answer.question == question.ordinal
        and answer.voter == actor.voter
        and answer.accepted == _of_comment(answer.source_event_id, key)
        for answer in answers
    )


async def _reply_wrong_kind(
    context: BotContext, action: Action, actor: Actor, comment: ParsedText, question: Question
) -> str:
    """Reply, once per person, which kind of answer the question needs."""
    if not comment.explicit and comment.decision is None and not _looks_like_decision(comment):
        return CONVERSATION
    if question.kind is QuestionKind.INPUT:
        text = f"{question.name} is a question, not an approval. Reply with text or a choice."
    else:
        text = f"{question.name} needs an approval. Write approve, or deny and a reason."
    if not context.background.first(("wrong_kind", question.name, actor.voter)):
        return CONVERSATION
    return await reply(context, action, question.job, actor, text)


def _looks_like_decision(comment: ParsedText) -> bool:
    return comment.answer.strip().casefold() in {
        "yes",
        "no",
        "ok",
        "okay",
        "approved",
        "denied",
        "y",
    }
