"""What a message looks like in Slack: blocks, and `text` for who cannot see them. Pure.

Whatever text comes in, a valid message comes out. Nobody is notified but those whom a question is
for, and they by its first copy alone: a rewritten one rings nobody's bell.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from draftsman.domain.attachment import LENGTH, is_long, wholes
from draftsman.domain.delivery import DeliveryKind, Message, Subject
from draftsman.domain.job import TERMINAL, Status
from draftsman.domain.question import Question
from draftsman.domain.wording import (
    brief,
    change,
    details,
    ending,
    ending_parts,
    notice,
    pr_url,
    settled,
    settled_parts,
)
from draftsman_bots.slack import ids
from draftsman_bots.slack.asking import NAME, fitting
from draftsman_bots.slack.blocks import (
    Block,
    actions,
    bold,
    button,
    context,
    fenced,
    moment,
    paragraphs,
    section,
)
from draftsman_bots.slack.budget import fitted
from draftsman_bots.slack.text import TEXT, escaped, link, named
from draftsman_bots.text import clamped

MARKS: Final = {
    Status.SCHEDULED: ":alarm_clock:",
    Status.QUEUED: ":hourglass:",
    Status.CLAIMED: ":hourglass:",
    Status.RUNNING: ":gear:",
    Status.RESUMED: ":gear:",
    Status.RETRYING: ":repeat:",
    Status.WAITING_FOR_INPUT: ":question:",
    Status.WAITING_FOR_APPROVAL: ":question:",
    Status.COMPLETED: ":white_check_mark:",
    Status.FAILED: ":x:",
    Status.DEAD_LETTER: ":x:",
    Status.CANCELED: ":no_entry_sign:",
    Status.EXPIRED: ":stopwatch:",
}
DENIED: Final = ":no_entry:"
"""Mark of a job that a person denied: it failed, and nothing crashed."""
UNTROUBLED: Final = frozenset({Status.CANCELED, Status.COMPLETED})
"""Statuses of which an earlier error is not shown."""
AGAIN: Final = TERMINAL - {Status.COMPLETED}
"""Ends after which people may want another try."""
WHOLE: Final = "This is a part of it; the whole is a file in this thread."


@dataclass(frozen=True, slots=True)
class Rendered:
    """What `chat.postMessage` and `chat.update` take."""

    text: str
    blocks: list[Block]


def render(message: Message, *, replies: bool = False) -> Rendered:
    """Return what people see of a message.

    `replies`: an answer in words is read without a mention of the bot.
    """
    return Rendered(short(message, replies=replies), fitted(_blocks(message, replies)))


def short(message: Message, *, replies: bool = False) -> str:
    """Return the message as plain text that is never too long for Slack."""
    how = "reply in this thread" if replies else f"mention {NAME} in this thread"
    said = escaped(brief(message, how), TEXT)
    if message.kind is DeliveryKind.QUESTION_CLOSED and message.question is not None:
        return _of_people(said, _settled_head(message.question))
    subject = message.subject
    by_person = subject.status is Status.CANCELED or subject.denied
    if message.kind is DeliveryKind.RESULT and by_person:
        ended = escaped(ending(subject, again=""))
        return said.replace(ended, _of_people(ended, _ending_head(subject)), 1)
    return said


def _blocks(message: Message, replies: bool) -> Iterator[Block]:
    match message.kind:
        case DeliveryKind.STATUS:
            yield from _card(message.subject)
        case DeliveryKind.QUESTION | DeliveryKind.REMINDER if message.question is not None:
            yield from _question(message, replies)
        case DeliveryKind.QUESTION_CLOSED if message.question is not None:
            yield from _closed(message)
        case DeliveryKind.RESULT:
            yield from _result(message)
        case DeliveryKind.NOTICE:
            yield from _notice(message)
        case _:
            yield section(short(message))


def _card(subject: Subject) -> Iterator[Block]:
    """Yield the one message of a job that is rewritten as it moves."""
    yield section(_headline(subject))
    yield context(*_facts(subject))
    if subject.error and not subject.denied and subject.status not in UNTROUBLED:
        yield fenced(clamped(subject.error, LENGTH // 4))
    if pressed := _buttons(subject):
        yield actions([pressed])


def _headline(subject: Subject) -> str:
    mark = DENIED if subject.denied else MARKS[subject.status]
    return f"{mark} *{subject.name}* {bold(subject.title)}"


def _facts(subject: Subject) -> Iterator[str]:
    state = str(subject.status).replace("_", " ")
    if subject.status is Status.DEAD_LETTER:
        state = "failed for the last time"
    if subject.status is Status.RETRYING and subject.next_retry_at is not None:
        state = f"{state} {moment(subject.next_retry_at)}"
    if not subject.denied:
        yield state
    if subject.status is Status.CANCELED or subject.denied:
        yield _of_people(escaped(ending(subject, again=""), 300), _ending_head(subject))
    for name, value in (("", subject.repo), ("by ", subject.agent), ("for ", subject.invoker)):
        if value:
            yield name + person(value)
    if subject.url:
        yield link(subject.url)
    if (when := subject.finished_at or subject.created_at) is not None:
        yield moment(when)


def _buttons(subject: Subject) -> Block | None:
    value = ids.job_value(subject.number)
    if subject.status in AGAIN:
        return button("Retry", ids.RETRY, value)
    if subject.status in TERMINAL:
        return None
    confirm = f"Cancel {subject.name}? What it did so far is kept."
    return button("Cancel job", ids.CANCEL, value, "danger", confirm)


def _question(message: Message, replies: bool) -> Iterator[Block]:
    question = message.question
    assert question is not None  # noqa: S101
    payload, reminder = message.payload or {}, []
    if message.kind is DeliveryKind.REMINDER:
        text = payload.get("text") or f"{question.name} still waits for an answer"
        reminder = paragraphs(str(text), 1)
    title = message.subject.title
    yield from fitting(question, title, message.asked, reminder, replies=replies)


def _closed(message: Message) -> Iterator[Block]:
    """Yield what became of a question: nothing is left to press."""
    question = message.question
    assert question is not None  # noqa: S101
    text = f"{question.name} {settled(question)}"
    yield from _paragraphs_of_people(text, _settled_head(question))
    yield context(f"{bold(message.subject.title, 200)} asked:")
    yield from paragraphs(question.text)


def _result(message: Message) -> Iterator[Block]:
    subject, result = message.subject, message.subject.result or {}
    yield section(_headline(subject))
    words = clamped(ending(subject, again="press Retry"), LENGTH // 2)
    if subject.status is Status.CANCELED or subject.denied:
        yield from _paragraphs_of_people(words, _ending_head(subject), 3)
    elif subject.status is not Status.COMPLETED:  # what stands below says that it is
        yield from paragraphs(words, 3)
    summary = result.get("summary")
    if isinstance(summary, str) and summary.strip():
        yield from paragraphs(clamped(summary, LENGTH // 2), 3)
    if url := pr_url(result):
        yield section(link(url))
    for words in (change(result), details(result)):
        yield from paragraphs(clamped(words, LENGTH // 4), 1)
    yield context(*_facts(subject))
    if wholes(message):
        yield context(WHOLE)
    if subject.status in AGAIN and (pressed := _buttons(subject)):
        yield actions([pressed])


def _notice(message: Message) -> Iterator[Block]:
    text = str((message.payload or {}).get("text", ""))
    yield from paragraphs(notice(message.subject, clamped(text, LENGTH)), 5)
    if is_long(text) and "to" not in (message.payload or {}):
        yield context(WHOLE)


def _settled_head(question: Question) -> str:
    return f"{question.name} {settled_parts(question)[0]}"


def _ending_head(subject: Subject) -> str:
    return ending_parts(subject)[0]


def _paragraphs_of_people(text: str, head: str, most: int = 4) -> Iterator[Block]:
    """Yield text in sections that begins with how something ended, and by whom: its head."""
    for place, block in enumerate(paragraphs(text, most)):
        if place == 0:
            block["text"]["text"] = _of_people(block["text"]["text"], head)
        yield block


def _of_people(text: str, head: str) -> str:
    """Return escaped text whose head says how something ended, voters there by their names here.

    The text after the head was written by a person: its mentions stay escaped.
    """
    length = len(escaped(head))
    return named(text[:length]) + text[length:]


def person(name: str) -> str:
    """Return who it is: a Slack voter by their name here, everybody else as they are called."""
    return named(escaped(name, 100))
