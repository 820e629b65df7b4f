"""Rendering of a question: its text, its audience and its controls. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum
from functools import partial
from typing import Final

from draftsman.agent_runs.changes.diff import diffstat, is_diff
from draftsman.deliveries.action_text import action_text
from draftsman.deliveries.attachment import LENGTH, LINES, is_long
from draftsman.deliveries.delivery import Delegation
from draftsman.deliveries.plain_text import missing_diff, title_before
from draftsman.jobs.job import Source
from draftsman.people.policy import Person
from draftsman.questions.question import Question, QuestionKind
from draftsman_bots.slack import ids
from draftsman_bots.slack.deliveries.blocks import (
    MAX_BUTTONS,
    Block,
    actions,
    bold,
    button,
    code_block,
    context,
    drop_to_fit,
    external_select,
    fits,
    local_time,
    option,
    paragraphs,
    section,
    select,
    users_select,
)
from draftsman_bots.slack.deliveries.mrkdwn import escape_truncated
from draftsman_bots.text import truncate

MAX_MENTIONS: Final = 20
"""People who are mentioned; the others are counted."""
MAX_DESCRIPTIONS: Final = 10
"""Choices that are described in the message; with more, only the select does."""
NO_APPROVER: Final = (
    ":warning: This approval has no approver: the named approvers are not in the configuration, or"
    " requested the job themselves. An operator can give a person under `[people]` the role"
    " `approver` and restart draftsman, or cancel the job."
)
BOT_NAME: Final = "@draftsman"
"""The mention of the bot, with the name in the manifests."""
FREE_TEXT_LABEL: Final = "Answer with text…"
APPROVAL_REACTIONS: Final = "React with :+1: approve · :-1: deny"
_IN_FULL: Final = "To read it, run draftsman show"


class AnswerReactions(IntEnum):
    """Reactions to a question's message that are answers."""

    NONE = 0
    CHOICES = 1
    """Those of choices with an emoji."""
    APPROVALS = 2
    """Also those that decide approvals."""


class Detail(IntEnum):
    """Levels of detail of a question's message, from complete to the required minimum."""

    ALL = 0
    NO_CONTEXT = 1
    NO_DESCRIPTIONS = 2
    """The select omits the descriptions of its options."""
    EXTERNAL_SELECT = 3
    """Slack requests the options when the select is opened, and the text is truncated."""


def fit_question(
    question: Question,
    title: str,
    people: Sequence[Person],
    prefix: Sequence[Block] = (),
    *,
    replies: bool = False,
    reactions: AnswerReactions = AnswerReactions.NONE,
    changes: str = "",
    delegation: Delegation | None = None,
) -> list[Block]:
    """Return the question with its controls, in as much detail as fits a message.

    `replies`: an answer is read without a mention of the bot. `changes` are the changes to review.
    """
    render_at = partial(
        render_question, question, title, people, replies=replies, reactions=reactions
    )
    for detail in Detail:
        text = render_at(detail=detail, changes=changes, delegation=delegation)
        blocks = [*prefix, *text, *controls(question, detail)]
        if fits(blocks):
            return blocks
    return drop_to_fit(blocks)


def render_question(
    question: Question,
    title: str,
    people: Sequence[Person],
    detail: Detail = Detail.ALL,
    *,
    replies: bool = False,
    reactions: AnswerReactions = AnswerReactions.NONE,
    changes: str = "",
    delegation: Delegation | None = None,
) -> Iterator[Block]:
    """Yield the question, its context, its changes, its audience and its expiry."""
    verb = "asks for approval" if question.kind is QuestionKind.APPROVAL else "asks"
    named = f" {bold(job, 200)}" if (job := title_before(question, title)) else ""
    yield section(f":question: *{question.name}*{named} {verb}:")
    yield from paragraphs(question.text, 6 if detail < Detail.EXTERNAL_SELECT else 1)
    if question.context_snippet and question.context_snippet.strip():
        if detail is Detail.ALL:
            yield from _context(question.context_snippet)
        else:
            yield context(f"The context is too long for this message. {_IN_FULL} {question.name}")
    if action := question.approved_action:
        yield context("If approved:")
        yield code_block(truncate(action_text(action), LENGTH // 3))
    if changes:
        command = f"`draftsman diff {question.name}`"
        yield context(f":page_facing_up: {escape_truncated(changes, 300)} · {command}")
    if detail < Detail.NO_DESCRIPTIONS and (described := _descriptions(question)):
        yield from paragraphs(described, 3)
    if hint := _reactions(question, reactions):
        yield context(hint)
    if people:
        yield section(f"For {_mention_list(people)}")
    elif question.kind is QuestionKind.APPROVAL:
        yield section(NO_APPROVER)
    if delegation is not None:
        until = local_time(delegation.until)
        yield context(f"{escape_truncated(delegation.text, 300)}, until {until}")
    yield context(*_footer(question, replies))


def controls(question: Question, detail: Detail = Detail.ALL) -> Iterator[Block]:
    """Yield the controls, whose values are ids only."""
    block = ids.question_block(question.job, question.ordinal)
    value = ids.answer_value(question.job, question.ordinal)
    if question.kind is QuestionKind.APPROVAL:
        approve = button("Approve", ids.APPROVE, value, style="primary")
        yield actions([approve, button("Deny…", ids.DENY, value, style="danger")], block)
        yield _attention(question)
        return
    buttons = list(_choices(question, detail))
    if question.freeform_allowed:
        buttons.append(button(FREE_TEXT_LABEL, ids.FREE, value))
    if buttons:
        yield actions(buttons, block)
    yield _attention(question)


def _attention(question: Question) -> Block:
    """Return the controls to acknowledge, snooze and delegate a question."""
    value = ids.answer_value(question.job, question.ordinal)
    elements = [
        button("I'm on it", ids.ACKNOWLEDGE, value),
        button("Snooze 2 h", ids.SNOOZE, value),
        users_select(ids.DELEGATE, "Delegate to…"),
    ]
    return actions(elements, ids.attention_block(question.job, question.ordinal))


def options(question: Question) -> list[Block]:
    """Return all choices as options, in order."""
    return [
        option(
            f"{number}. {choice['label']}",
            ids.answer_value(question.job, question.ordinal, number),
            choice.get("description"),
        )
        for number, choice in enumerate(question.choices, 1)
    ]


def _choices(question: Question, detail: Detail) -> Iterator[Block]:
    if len(question.choices) > MAX_BUTTONS:
        if detail >= Detail.EXTERNAL_SELECT:
            yield external_select(ids.CHOOSE, "Choose an answer")
            return
        select_options = options(question)
        if detail >= Detail.NO_DESCRIPTIONS:
            select_options = [
                {name: option_block[name] for name in ("text", "value")}
                for option_block in select_options
            ]
        yield select(ids.CHOOSE, select_options, "Choose an answer")
        return
    for number, choice in enumerate(question.choices, 1):
        value = ids.answer_value(question.job, question.ordinal, number)
        yield button(str(choice["label"]), ids.answer_action(number), value)


def _context(snippet: str) -> Iterator[Block]:
    """Yield the start of the context; for a diff its statistics first."""
    if is_diff(snippet):
        yield code_block(truncate(diffstat(snippet), LENGTH // 2))
    lines = "\n".join(snippet.splitlines()[:LINES])
    yield code_block(truncate(lines, LENGTH))
    if is_long(snippet, LINES):
        yield context("Truncated. The full text is a file in this thread.")


def _descriptions(question: Question) -> str:
    if len(question.choices) > MAX_DESCRIPTIONS:
        return ""
    needs_text = any(
        len(str(choice["label"])) > 60 or choice.get("description") for choice in question.choices
    )
    if not needs_text:
        return ""
    return "\n".join(
        f"{number}. {choice['label']}"
        + (f" - {choice['description']}" if choice.get("description") else "")
        for number, choice in enumerate(question.choices, 1)
    )


def _reactions(question: Question, reactions: AnswerReactions) -> str:
    """Return which reactions choose an answer; "" for a question without any."""
    if question.kind is QuestionKind.APPROVAL:
        return APPROVAL_REACTIONS if reactions is AnswerReactions.APPROVALS else ""
    if reactions is AnswerReactions.NONE:
        return ""
    pairs = [
        f":{choice['emoji']}: {escape_truncated(str(choice['label']), 60)}"
        for choice in question.choices[:MAX_DESCRIPTIONS]
        if choice.get("emoji")
    ]
    return f"React with {' · '.join(pairs)}" if pairs else ""


def _mention_list(people: Sequence[Person]) -> str:
    names = ", ".join(_mention(person) for person in people[:MAX_MENTIONS])
    hidden = len(people) - MAX_MENTIONS
    return f"{names} and {hidden} more" if hidden > 0 else names


def _footer(question: Question, replies: bool) -> Iterator[str]:
    if missing := missing_diff(question):
        yield missing
    if question.kind is QuestionKind.APPROVAL and question.quorum > 1:
        yield f"{question.quorum} approvals are needed"
    if question.escalated_at is not None and question.escalate_to:
        group = escape_truncated(question.escalate_to, 100)
        yield f"no answer in time: also sent to {group}"
    if question.expires_at is not None:
        yield f"expires {local_time(question.expires_at)}"
    is_approval = question.kind is QuestionKind.APPROVAL
    verb = "approve or deny" if is_approval else "answer"
    example = "approve" if is_approval else "ANSWER"
    reply = "by replying" if replies else f"with `{BOT_NAME} {example}`"
    yield f"{verb} here, {reply} in this thread, or in a terminal: {question.name}"


def _mention(person: Person) -> str:
    user_id = ids.account_user_id(person.ids.get(Source.SLACK, ""))
    usable = user_id.isascii() and user_id.isalnum()
    return f"<@{user_id}>" if usable else escape_truncated(person.name, 100)
