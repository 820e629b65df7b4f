"""Printer of documents as plain text: whole, and as the short text of a notification. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from draftsman.deliveries.delivery import Message
from draftsman.deliveries.documents.builder import answer_step, build_document, full_at
from draftsman.deliveries.documents.document import (
    Action,
    Addressees,
    Choices,
    Code,
    Command,
    Controls,
    Document,
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
    more_items,
    read_at,
)
from draftsman.deliveries.documents.versions import in_words, text_width
from draftsman.formats.truncation import truncate
from draftsman.people.spans import ActorRef
from draftsman.questions.question import Question

_CHOICES: Final = 10
"""Maximum number of choices in a notification."""


def command_of(step: Step) -> str:
    """Return the command of a step, for a terminal."""
    if not step.is_answer:
        return step.command
    if step.action is Action.APPROVE:
        name = step.command
        changes = f", draftsman request-changes {name} TEXT" if step.changes else ""
        return f"draftsman approve {name}{changes}, or draftsman deny {name} --reason …"
    if not step.choices:
        return f"draftsman answer {step.command} '{step.wanted or 'your answer'}'"
    free_text = f", or {step.wanted or 'free text'}" if step.freeform else ""
    return f"draftsman answer {step.command} NUMBER{free_text}"


def to_answer(step: Step, call: str, *, command: str = "{}", answer: str = "") -> str:
    """Return how to answer in a text: `call` says how to write it, such as `reply`.

    A `command` of a decision is written so, and an answer stands behind `answer`.
    """
    if step.action is Action.APPROVE:
        verbs = ("approve", "request-changes", "deny")
        approve, request, deny = (f"`{command.format(verb)}`" for verb in verbs)
        changes = f", {request} and what to change" if step.changes else ""
        return f"to answer, {call} {approve}{changes}, or {deny} and a reason"
    free = f" or {step.wanted or 'your own text'}" if step.freeform else ""
    what = f"the number of a choice{free}" if step.choices else step.wanted or "your answer"
    return f"to answer, {call} {answer}{what}"


def render_plain(
    message: Message, step: Callable[[Step], str] = command_of, most: int | None = None
) -> str:
    """Return the message as lines of text, whole or within a length.

    `step` returns how to take a step.
    """
    text = print_plain(build_document(message), step)
    if most is None or len(text) <= most:
        return text
    notice = "".join(map(str, read_at(full_at(message))))
    return f"{truncate(text, most - len(notice) - 1)}\n{notice}"


def brief_text(message: Message, reply: str = "reply in this thread") -> Text:
    """Return the message as the short text of a chat notification, above its controls.

    A result has its summary without data, and a question its first choices. `reply` tells how to
    answer in free text.
    """

    def step(step: Step) -> str:
        if step.action is Action.APPROVE:
            changes = ", request changes with a text" if step.changes else ""
            return f"{reply}: approve{changes}, or deny with a reason"
        return f"{reply}: {step.wanted or 'your answer'}"

    lines = [*_lines(build_document(message), step, is_brief=True)]
    return tuple(span for line in lines for span in ("\n", *line))[1:]


def print_plain(document: Document, step: Callable[[Step], str] = command_of) -> str:
    """Return a document as lines of text, whole."""
    lines = _lines(document, step, is_brief=False)
    return "\n".join("".join(map(str, line)) for line in lines)


def how_to_answer(question: Question) -> str:
    """Return the command that answers a question."""
    return command_of(answer_step(question))


def _lines(
    document: Document, step: Callable[[Step], str], *, is_brief: bool
) -> Iterator[tuple[str | ActorRef, ...]]:
    """Yield the lines of a document; a headline that says nothing itself begins the next one."""
    begun: tuple[str | ActorRef, ...] = ()
    for part in in_words(document):
        if isinstance(part, Headline):
            begun = (*_headline(part), *_spans(part.says, step))
            if part.says:
                yield begun
                begun = ()
            continue
        for line in _part(part, step, is_brief=is_brief):
            yield (*begun, *line)
            begun = ()
    if begun:
        yield begun


def _headline(part: Headline) -> tuple[str, ...]:
    title = f" {part.title!r}" if part.title.strip() else ""
    return (f"{part.name}{title} {f'{part.verb}: ' if part.verb else ''}",)


def _part(
    part: Part, step: Callable[[Step], str], *, is_brief: bool
) -> Iterator[tuple[str | ActorRef, ...]]:
    match part:
        case Paragraph(text) | Note(text):
            if not (is_brief and any(isinstance(span, Step) for span in text)):
                yield _spans(text, step)
        case Quote(text):
            yield (text,)
        case Footer(items):
            yield from (_spans(item, step) for item in items)
        case Choices():
            yield from ((line,) for line in _choices(part, is_brief=is_brief))
        case Items(items):
            yield from (("• ", *_spans(item, step)) for item in items)
            if more := more_items(part, len(items)):
                yield _spans(more, step)
        case Facts(items) if not is_brief and items:
            facts = (_spans(item, step) for item in items)
            yield tuple(span for fact in facts for span in (" · ", *fact))[1:]
        case Code(folds=folds) if not (is_brief and folds):
            yield from ((line,) for line in _code_lines(part))
        case Addressees(people) if not is_brief:
            yield (f"For {', '.join(person.name for person in people)}",)
        case Facts() | Code() | Addressees() | InFile() | Controls() | Headline():
            pass


def _code_lines(part: Code) -> Iterator[str]:
    if not part.is_table:
        yield from (f"| {line}" for line in part.text.splitlines())
        return
    head, *rows = part.text.split("\n")
    yield head
    yield "─" * max(map(text_width, (head, *rows)))
    yield from rows


def _choices(choices: Choices, *, is_brief: bool) -> Iterator[str]:
    if is_brief:
        for number, choice in enumerate(choices.items[:_CHOICES], 1):
            yield f"{number}. {choice.label}"
        if (hidden := len(choices.items) - _CHOICES) > 0:
            yield f"and {hidden} more"
        return
    for number, choice in enumerate(choices.items, 1):
        description = f" - {choice.description}" if choice.description else ""
        yield f"  {number}  {choice.label}{description}"


def _spans(text: Text, step: Callable[[Step], str]) -> tuple[str | ActorRef, ...]:
    """Return a text as words and references to people."""
    return tuple(_span(span, step) for span in text)


def _span(span: object, step: Callable[[Step], str]) -> str | ActorRef:
    match span:
        case str() | ActorRef():
            return span
        case Step():
            return step(span)
        case Command(line):
            return line
        case _:
            return str(span)
