"""A question on a card: what it says, whom it is for, and what to write. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from draftsman.domain.job import Source
from draftsman.domain.messages.action_text import action_text
from draftsman.domain.messages.attachment import LENGTH, LINES, is_long
from draftsman.domain.messages.diff import diffstat, is_diff
from draftsman.domain.messages.plain_text import missing_diff
from draftsman.domain.people.policy import Person
from draftsman.domain.question import Question, QuestionKind
from draftsman_bots.text import truncate, utf16_length
from draftsman_bots.trello.markdown import bold, code, escape_truncated

MAX_MENTIONS: Final = 20
"""People who are named; more would be a crowd, of whom nobody feels meant."""
MAX_DESCRIPTIONS: Final = 10
"""Choices that are described; of more, only what they are called is shown."""
MAX_CHOICES_LENGTH: Final = 5000
"""Characters of all choices; of those that do not fit the numbers count none the less."""
MemberNames = Mapping[str, str]
"""What the members of the board are called, by their ids: as `@name` rings their bell."""


def render_question(
    question: Question, title: str, people: Sequence[Person], names: MemberNames
) -> Iterator[str]:
    """Yield the paragraphs of an open question."""
    gate = question.kind is QuestionKind.APPROVAL
    verb = "asks for approval" if gate else "asks"
    yield f"❓ **{question.name}** {bold(title, 200)} {verb}:"
    yield escape_truncated(question.text, 6000)
    if question.context_snippet and question.context_snippet.strip():
        yield from _context(question.context_snippet)
    if question.action:
        yield f"If approved:\n{code(truncate(action_text(question.action), LENGTH // 3))}"
    if question.choices:
        yield _choices(question)
    if people:
        yield f"For {_people(people, names)}"
    yield " ".join(_small(question))


def answer_instructions(question: Question) -> str:
    """Return what to write in a comment."""
    if question.kind is QuestionKind.APPROVAL:
        return "Write a comment that begins with `approve`, or with `deny` and why."
    if not question.choices:
        return "Write a comment: `/answer` and your answer."
    own = ", or `/answer` and your own words" if question.freeform_allowed else ""
    return f"Write a comment with the number{own}."


def _choices(question: Question) -> str:
    described = len(question.choices) <= MAX_DESCRIPTIONS
    kept: list[str] = []
    room = MAX_CHOICES_LENGTH
    for place, choice in enumerate(question.choices, 1):
        line = _choice(place, choice, described=described)
        room -= utf16_length(line) + 1
        if room < 0:
            left = len(question.choices) - len(kept)
            kept.append(f"… and {left} more: draftsman show {question.name.partition('/')[0]}")
            break
        kept.append(line)
    return "\n".join(kept)


def _choice(place: int, choice: Mapping[str, Any], *, described: bool) -> str:
    note = choice.get("description") if described else None
    more = f" - {escape_truncated(str(note), 400)}" if note else ""
    return f"{place}. {escape_truncated(str(choice['label']), 200)}{more}"


def _context(snippet: str) -> Iterator[str]:
    """Yield the beginning of what a question is about; of a diff its statistics first."""
    if is_diff(snippet):
        yield code(truncate(diffstat(snippet), LENGTH // 2))
    yield code(truncate("\n".join(snippet.splitlines()[:LINES]), LENGTH))
    if is_long(snippet, LINES):
        yield "This is the beginning; the whole is attached to the card."


def _people(people: Sequence[Person], names: MemberNames) -> str:
    more = f" and {len(people) - MAX_MENTIONS} more" if len(people) > MAX_MENTIONS else ""
    return ", ".join(_mention(person, names) for person in people[:MAX_MENTIONS]) + more


def _mention(person: Person, names: MemberNames) -> str:
    own = names.get(person.ids.get(Source.TRELLO, ""))
    return f"@{own}" if own else escape_truncated(person.name, 100)


def _small(question: Question) -> Iterator[str]:
    yield answer_instructions(question)
    if question.kind is QuestionKind.APPROVAL and question.quorum > 1:
        yield f"{question.quorum} approvals are needed."
    if missing := missing_diff(question):
        yield f"{missing.capitalize()}."
    if question.escalated_at is not None and question.escalate_to:
        group = escape_truncated(question.escalate_to, 100)
        yield f"Nobody answered in time: it went to {group} as well."
    if question.expires_at is not None:
        yield f"It expires at {question.expires_at.isoformat(sep=' ', timespec='minutes')}."
