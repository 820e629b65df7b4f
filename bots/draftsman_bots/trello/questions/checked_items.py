"""Answers by checklist: the first item of a question's checklist that a person checks counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from draftsman.actions import questions
from draftsman.deliveries.target import parse
from draftsman.errors import Failure
from draftsman.people.actor import Actor
from draftsman.questions.question import Question, QuestionKind, QuestionStatus
from draftsman_bots.conversation.replies import ReplyKind, press
from draftsman_bots.trello import ids
from draftsman_bots.trello.deliveries.checklists import item_names
from draftsman_bots.trello.questions.answers import WORDING, CardConversation
from draftsman_bots.trello.records.service import boards_of
from draftsman_bots.trello.replies import reply
from draftsman_bots.trello.requests.label_jobs import GONE_STATUSES

if TYPE_CHECKING:
    from draftsman_bots.trello.actions import Action
    from draftsman_bots.trello.context import BotContext

UNCHECKED = "unchecked"
RENAMED: Final = (
    "{}: this item was renamed, so to check it is no answer. Write a comment with the answer."
)


async def on_item(context: BotContext, action: Action) -> str:
    """Process a checked or unchecked item; return its outcome, for a counter. Raises Failure."""
    if action.member == context.me.id:
        return "own"
    stored = await boards_of(context.rt).cards.find_checklist(action.checklist)
    number = stored.items.get(action.item) if stored is not None else None
    if stored is None or number is None:
        return "ignored"
    question = await context.rt.questions.get(stored.job, stored.question)
    actor = await context.rt.people.actor(
        Actor("trello", action.member, action.name or action.member)
    )
    if action.checked:
        return await _answer(context, action, actor, question, number)
    return await _explain_unchecked(context, action, question, number)


async def _answer(
    context: BotContext, action: Action, actor: Actor, question: Question, number: int
) -> str:
    """Submit the choice, and reply where the question's own comment does not show the result."""
    job = question.job
    if action.item_name != item_names(question)[number - 1]:
        # every member of the board can rename it, also for a person who may answer
        await reply(context, action, job, actor, RENAMED.format(question.name))
        await _uncheck(context, action)
        return "renamed"
    row = (job, question.ordinal)
    conversation = CardConversation(context.rt, actor, WORDING)
    key = ids.action_key(action.id)
    if question.kind is QuestionKind.APPROVAL:
        decision = questions.approve if number == 1 else questions.deny
        result = await press(conversation, decision, row, "", key)
    else:
        result = await press(conversation, questions.answer, row, "", key, choice=number)
    if result.text:
        await reply(context, action, job, actor, result.spans)
    is_open = (await context.rt.questions.get(*row)).status is QuestionStatus.OPEN
    if is_open and result.kind is ReplyKind.REFUSED:
        await _uncheck(context, action)
    return str(result.kind)


async def _uncheck(context: BotContext, action: Action) -> None:
    """Uncheck an item whose check was refused, so that another person can check it."""
    try:
        path = f"/cards/{action.card}/checkItem/{action.item}"
        await context.trello.put(path, state="incomplete")
    except Failure as error:
        if error.http_status not in GONE_STATUSES:
            raise


async def _explain_unchecked(
    context: BotContext, action: Action, question: Question, number: int
) -> str:
    """Reply, once for each item, that the answer of an item that was unchecked stays."""
    resolution = question.resolution or {}
    if question.kind is QuestionKind.APPROVAL:
        answered = resolution.get("outcome") == ("approved" if number == 1 else "denied")
    else:
        answered = resolution.get("value") == question.values()[number - 1]
    if question.status is QuestionStatus.OPEN or not answered:
        return "ignored"
    text = f"{question.name} stays {resolution.get('outcome')}: to uncheck an item changes nothing."
    at = parse(ids.card_target(action.card))
    await context.rt.outbox.notice(question.job, f"{UNCHECKED}:{action.item}", text, at=at)
    return UNCHECKED
