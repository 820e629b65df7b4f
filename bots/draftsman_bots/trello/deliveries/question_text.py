"""Text of a question on a card, with mentions and answer instructions. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from draftsman.agent_runs.changes.diff import diffstat, is_diff
from draftsman.deliveries.action_text import action_text
from draftsman.deliveries.attachment import LENGTH, LINES, is_long
from draftsman.deliveries.delivery import Delegation
from draftsman.deliveries.plain_text import format_time, missing_diff, title_before
from draftsman.jobs.job import Source
from draftsman.people.policy import Person
from draftsman.questions.question import Question, QuestionKind
from draftsman_bots.text import truncate, utf16_length
from draftsman_bots.trello.deliveries.markdown import bold, code, escape_truncated, one_line
from draftsman_bots.trello.deliveries.member_names import MemberNames

MAX_MENTIONS: Final = 20
"""Maximum number of people to mention."""
MAX_DESCRIPTIONS: Final = 10
"""Maximum number of choices to show with descriptions."""
MAX_CHOICES_LENGTH: Final = 5000
"""Maximum characters of all choices; choices that are not shown can still be chosen by number."""


def render_question(
    question: Question,
    title: str,
    people: Sequence[Person],
    names: MemberNames,
    changes: str = "",
    *,
    checklist: bool = False,
    delegation: Delegation | None = None,
) -> Iterator[str]:
    """Yield the paragraphs of an open question; `changes` are the changes to review.

    `checklist` tells whether people may also check an item of the card's checklist.
    """
    is_approval = question.kind is QuestionKind.APPROVAL
    verb = "asks for approval" if is_approval else "asks"
    named = f" {bold(job, 200)}" if (job := title_before(question, title)) else ""
    yield f"❓ **{question.name}**{named} {verb}:"
    yield escape_truncated(question.text, 6000)
    if question.context_snippet and question.context_snippet.strip():
        yield from _context(question.context_snippet)
    if action := question.approved_action:
        yield "If approved:"
        yield code(truncate(action_text(action), LENGTH // 3))
    if changes:
        yield f"{escape_truncated(changes, 300)}: `draftsman diff {question.name}`"
    if question.choices:
        yield _choices(question)
    if people:
        yield f"For {_people(people, names)}"
    if delegation is not None:
        asked = escape_truncated(delegation.text, 300)
        yield f"{asked}, until {format_time(delegation.until)}."
    yield " ".join(_instructions(question, checklist=checklist))


def answer_instructions(question: Question) -> str:
    """Return how to answer in a comment."""
    if question.kind is QuestionKind.APPROVAL:
        return "To answer, comment `approve`, or `deny` and a reason."
    if not question.choices:
        return "To answer, comment `/answer` and your answer."
    free_text = ", or `/answer` and free text" if question.freeform_allowed else ""
    return f"To answer, comment the number{free_text}."


def _choices(question: Question) -> str:
    described = len(question.choices) <= MAX_DESCRIPTIONS
    lines: list[str] = []
    room = MAX_CHOICES_LENGTH
    for number, choice in enumerate(question.choices, 1):
        line = _choice(number, choice, described=described)
        room -= utf16_length(line) + 1
        if room < 0:
            left = len(question.choices) - len(lines)
            job = question.name.partition("/")[0]
            return "\n".join(lines) + f"\n\n… and {left} more: `draftsman show {job}`"
        lines.append(line)
    return "\n".join(lines)


def _choice(number: int, choice: Mapping[str, Any], *, described: bool) -> str:
    note = choice.get("description") if described else None
    more = f" - {one_line(str(note), 400)}" if note else ""
    return f"{number}. {one_line(str(choice['label']), 200)}{more}"


def _context(snippet: str) -> Iterator[str]:
    """Yield the beginning of a question's context, after the statistics of a diff."""
    if is_diff(snippet):
        yield code(truncate(diffstat(snippet), LENGTH // 2))
    yield code(truncate("\n".join(snippet.splitlines()[:LINES]), LENGTH))
    if is_long(snippet, LINES):
        yield "Truncated. The full text is attached to the card."


def _people(people: Sequence[Person], names: MemberNames) -> str:
    more = f" and {len(people) - MAX_MENTIONS} more" if len(people) > MAX_MENTIONS else ""
    return ", ".join(_mention(person, names) for person in people[:MAX_MENTIONS]) + more


def _mention(person: Person, names: MemberNames) -> str:
    username = names.get(person.ids.get(Source.TRELLO, ""))
    return f"@{username}" if username else escape_truncated(person.name, 100)


def _instructions(question: Question, *, checklist: bool) -> Iterator[str]:
    yield answer_instructions(question)
    if checklist:
        yield "Or check an item of the checklist."
    if question.kind is QuestionKind.APPROVAL and question.quorum > 1:
        yield f"Needs {question.quorum} approvals."
    if missing := missing_diff(question):
        yield f"{missing.capitalize()}."
    if question.escalated_at is not None and question.escalate_to:
        group = escape_truncated(question.escalate_to, 100)
        yield f"Escalated to {group}: no answer in time."
    if question.expires_at is not None:
        yield f"Expires at {format_time(question.expires_at)}."
