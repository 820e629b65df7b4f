"""Printer of messages: blocks, and `text` for clients that cannot show them. Pure.

The result is valid for any text. Only the people whom a question is for are mentioned, and notified
by its first copy only: an edit sends no notification.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from itertools import groupby
from typing import Final

from draftsman.deliveries.delivery import Message
from draftsman.deliveries.documents.builder import (
    build_document,
    full_at,
    question_choices,
    question_controls,
)
from draftsman.deliveries.documents.document import (
    SHORT,
    Action,
    Addressees,
    Choice,
    Choices,
    Code,
    Command,
    Control,
    Controls,
    Facts,
    Footer,
    Headline,
    InFile,
    Items,
    Note,
    Paragraph,
    Part,
    Quote,
    Step,
    Text,
    descriptions_at,
    elsewhere,
    more_items,
    read_at,
    truncate_spans,
)
from draftsman.deliveries.documents.markdown import MAX_ADDRESSEES, MAX_DESCRIPTIONS
from draftsman.deliveries.documents.plain import brief_text
from draftsman.deliveries.documents.versions import Fold, fit
from draftsman.formats.truncation import utf16_length
from draftsman.people.policy import Person
from draftsman.questions.question import Question
from draftsman_bots.slack import ids
from draftsman_bots.slack.deliveries.blocks import (
    MAX_BUTTONS,
    Block,
    actions,
    bold,
    button,
    code_block,
    context,
    contexts,
    external_select,
    fits,
    is_code_cut,
    option,
    paragraphs,
    section,
    select,
    users_select,
)
from draftsman_bots.slack.deliveries.mrkdwn import MAX_TEXT, escape_truncated, mention_spans
from draftsman_bots.text import truncate

BOT_NAME: Final = "@draftsman"
"""The mention of the bot, with the name in the manifests."""
LONG_LABEL: Final = 60
"""Characters of the label of a choice that a button cuts off."""
JOB_ACTIONS: Final = {
    Action.CANCEL: ids.CANCEL,
    Action.RETRY: ids.RETRY,
    Action.DISMISS: ids.DISMISS,
    Action.REVISE: ids.REVISE,
}
QUESTION_ACTIONS: Final = {
    Action.APPROVE: ids.APPROVE,
    Action.DENY: ids.DENY,
    Action.REQUEST_CHANGES: ids.REQUEST_CHANGES,
    Action.ANSWER: ids.FREE,
    Action.ACKNOWLEDGE: ids.ACKNOWLEDGE,
    Action.SNOOZE: ids.SNOOZE,
}
RULE_ACTIONS: Final = {Action.RATIFY: ids.RATIFY_RULE, Action.DECLINE: ids.DECLINE_RULE}
STYLES: Final = {
    Action.APPROVE: "primary",
    Action.RATIFY: "primary",
    Action.DENY: "danger",
    Action.DECLINE: "danger",
    Action.CANCEL: "danger",
}


class AnswerReactions(IntEnum):
    """Reactions to a question's message that are answers."""

    NONE = 0
    CHOICES = 1
    """Those of choices with an emoji."""
    APPROVALS = 2
    """Also those that decide approvals."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """Arguments of `chat.postMessage` and `chat.update`."""

    text: str
    blocks: list[Block]


@dataclass(frozen=True, slots=True)
class Topic:
    """What the controls of a message are about, by number."""

    job: int
    question: int = 0
    rule: int = 0


def render(
    message: Message,
    *,
    replies: bool = False,
    reactions: AnswerReactions = AnswerReactions.NONE,
) -> Rendered:
    """Return the rendered message.

    `replies`: an answer is read without a mention of the bot.
    """
    question = message.question
    rule = (message.payload or {}).get("rule")
    topic = Topic(
        job=message.subject.number,
        question=0 if question is None else question.ordinal,
        rule=rule if isinstance(rule, int) else 0,
    )
    blocks = fit(
        build_document(message),
        partial(print_blocks, topic=topic, replies=replies, reactions=reactions),
        fits,
        lambda block: block["type"] == "actions",
        full_at(message),
    )
    return Rendered(render_plain_text(message, replies=replies), blocks)


def render_plain_text(message: Message, *, replies: bool = False) -> str:
    """Return the message as plain text within Slack's limit."""
    instruction = "reply in this thread" if replies else f"mention {BOT_NAME} in this thread"
    return mention_spans(brief_text(message, instruction), MAX_TEXT)


def print_blocks(
    parts: Sequence[Part],
    fold: Fold = Fold.NOTHING,
    *,
    topic: Topic,
    replies: bool = False,
    reactions: AnswerReactions = AnswerReactions.NONE,
) -> list[Block]:
    """Return parts as blocks; notes that follow one another are a single block."""
    choices = next((part.items for part in parts if isinstance(part, Choices)), ())
    printer = _Printer(topic, choices, fold, replies=replies, reactions=reactions)
    blocks: list[Block] = []
    for is_note, group in groupby(parts, lambda part: isinstance(part, Note)):
        if is_note:
            texts = [text for part in group for text in printer.note(part)]
            blocks += contexts(*map(printer.text, texts))
        else:
            for part in group:
                blocks += printer.blocks(part)
                if notice := elsewhere(part, cut=isinstance(part, Code) and is_code_cut(part.text)):
                    blocks += contexts(printer.text(notice))
    return blocks


def controls(question: Question) -> list[Block]:
    """Return the controls of an open question."""
    topic = Topic(job=question.job, question=question.ordinal)
    printer = _Printer(topic, question_choices(question))
    return [block for part in question_controls(question) for block in printer.blocks(part)]


class _Printer:
    """Prints the parts of a document; `choices` are those that its controls offer."""

    def __init__(
        self,
        topic: Topic,
        choices: Sequence[Choice],
        fold: Fold = Fold.NOTHING,
        *,
        replies: bool = False,
        reactions: AnswerReactions = AnswerReactions.NONE,
    ) -> None:
        self._topic = topic
        self._fold = fold
        self._replies = replies
        self._reactions = reactions
        self._choices = choices

    def text(self, text: Text) -> str:
        """Return a short text as mrkdwn."""
        return mention_spans(truncate_spans(self._with_steps(text), SHORT, utf16_length))

    def note(self, part: Part) -> Iterator[Text]:
        """Yield the text of a note, and where to read what is cut off."""
        if isinstance(part, Note):
            yield part.text
            yield elsewhere(part)

    def blocks(self, part: Part) -> Iterator[Block]:
        """Yield the blocks of a part that is no note."""
        match part:
            case Headline(mark, name, title, verb):
                named = f" {bold(title)}" if title.strip() else ""
                asks = f" {verb}:" if verb else ""
                yield section(f"{mark.emoji_code} *{name}*{named}{asks}")
            case Paragraph(text, most):
                words = truncate_spans(self._with_steps(text), most, utf16_length)
                yield from paragraphs(words, 5, self._cut(part.full))
            case Quote(text, most, full):
                yield from paragraphs(truncate(text, most), 6, self._cut(full))
            case Code(text, most):
                yield code_block(truncate(text, most))
            case Choices(items, full):
                described = _described(items)
                yield from paragraphs(described, 3, self._cut(full))
                yield from contexts("" if described else self.text(descriptions_at(part)))
            case Items(items, full=full):
                lines = tuple(span for item in items for span in ("\n", "• ", *item))
                yield from paragraphs(self._with_steps(lines[1:]), 6, self._cut(full))
                yield from contexts(self.text(more_items(part, len(items))))
            case Addressees(people):
                yield section(f"For {_mentions(people)}")
            case Controls(items):
                yield from self._controls(items)
            case _:
                yield from self._small(part)

    def _small(self, part: Part) -> Iterator[Block]:
        match part:
            case Facts():
                yield from contexts(*map(self.text, part.all))
            case Footer(items):
                yield from contexts(self._reactions_hint(items))
                yield from contexts(*map(self.text, items))
            case InFile(what):
                yield context(f"{what} is a file in this thread.")
            case Note(text):
                yield context(self.text(text))

    def _cut(self, full: Command | None) -> str:
        return self.text(read_at(full))

    def _with_steps(self, text: Text) -> Text:
        """Return a text that says how to take its steps in Slack."""
        parts = [self._step(span) if isinstance(span, Step) else (span,) for span in text]
        return tuple(span for part in parts for span in part)

    def _step(self, step: Step) -> Text:
        if step.action is Action.RETRY:
            return ("press Retry",)
        is_approval = step.action is Action.APPROVE
        changes = ", request changes" if step.changes else ""
        verb = f"approve{changes} or deny" if is_approval else "answer"
        how: Text = ("by replying",)
        if not self._replies:
            how = ("with ", Command(f"{BOT_NAME} {'approve' if is_approval else 'ANSWER'}"))
        return f"{verb} here, ", *how, f" in this thread, or in a terminal: {step.command}"

    def _reactions_hint(self, items: Sequence[Text]) -> str:
        """Return which reactions answer; "" if none do."""
        steps = [span for item in items for span in item if isinstance(span, Step)]
        if any(step.action is Action.APPROVE for step in steps):
            is_read = self._reactions is AnswerReactions.APPROVALS
            return "React with :+1: approve · :-1: deny" if is_read else ""
        if self._reactions is AnswerReactions.NONE:
            return ""
        pairs = [
            f":{choice.emoji}: {escape_truncated(choice.label, LONG_LABEL)}"
            for choice in self._choices[:MAX_DESCRIPTIONS]
            if choice.emoji
        ]
        return f"React with {' · '.join(pairs)}" if pairs else ""

    def _controls(self, items: Sequence[Control]) -> Iterator[Block]:
        """Yield a row of controls, whose values are ids only."""
        elements = [element for item in items for element in self._elements(item)]
        if not elements:
            return
        kinds = {item.action for item in items}
        topic = self._topic
        if kinds & {Action.ACKNOWLEDGE, Action.DELEGATE}:
            yield actions(elements, ids.attention_block(topic.job, topic.question))
        elif kinds & {Action.APPROVE, Action.CHOOSE, Action.ANSWER}:
            yield actions(elements, ids.question_block(topic.job, topic.question))
        else:
            yield actions(elements)

    def _elements(self, control: Control) -> Iterator[Block]:
        topic = self._topic
        action = control.action
        style = STYLES.get(action)
        if action is Action.CHOOSE:
            yield from self._choose(control)
        elif action is Action.DELEGATE:
            yield users_select(ids.DELEGATE, control.label)
        elif action in JOB_ACTIONS:
            value = ids.job_value(topic.job)
            confirm = control.confirm or None
            yield button(control.label, JOB_ACTIONS[action], value, style=style, confirm=confirm)
        elif action in RULE_ACTIONS:
            value = ids.rule_value(topic.rule)
            yield button(control.label, RULE_ACTIONS[action], value, style=style)
        else:
            value = ids.answer_value(topic.job, topic.question)
            yield button(control.label, QUESTION_ACTIONS[action], value, style=style)

    def _choose(self, control: Control) -> Iterator[Block]:
        topic = self._topic
        if len(self._choices) <= MAX_BUTTONS:
            for number, choice in enumerate(self._choices, 1):
                value = ids.answer_value(topic.job, topic.question, number)
                yield button(choice.label, ids.answer_action(number), value)
        elif self._fold is Fold.TEXTS:
            yield external_select(ids.CHOOSE, control.label)
        else:
            yield select(ids.CHOOSE, options(self._choices, topic), control.label)


def options(choices: Sequence[Choice], topic: Topic) -> list[Block]:
    """Return choices as options of a select, in order."""
    return [
        option(
            f"{number}. {choice.label}",
            ids.answer_value(topic.job, topic.question, number),
            choice.description,
        )
        for number, choice in enumerate(choices, 1)
    ]


def _described(choices: Sequence[Choice]) -> str:
    """Return the choices as a list if their buttons do not say enough; else ""."""
    is_described = any(len(choice.label) > LONG_LABEL or choice.description for choice in choices)
    if not is_described or len(choices) > MAX_DESCRIPTIONS:
        return ""
    return "\n".join(
        f"{number}. {choice.label}{f' - {choice.description}' if choice.description else ''}"
        for number, choice in enumerate(choices, 1)
    )


def _mentions(people: Sequence[Person]) -> str:
    names = ", ".join(_mention(person) for person in people[:MAX_ADDRESSEES])
    hidden = len(people) - MAX_ADDRESSEES
    return f"{names} and {hidden} more" if hidden > 0 else names


def _mention(person: Person) -> str:
    user_id = ids.account_user_id(person.ids.get("slack", ""))
    usable = user_id.isascii() and user_id.isalnum()
    return f"<@{user_id}>" if usable else escape_truncated(person.name, 100)
