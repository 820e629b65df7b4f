"""Renderer of messages as Markdown comments. Pure.

Any text gives a comment that Trello accepts after the marker is added. Only the people whom a
question is addressed to are mentioned.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from draftsman.agent_runs.changes.diff import diffstat, is_diff
from draftsman.deliveries.action_text import action_text
from draftsman.deliveries.attachment import (
    LENGTH,
    LINES,
    is_long,
    is_truncated_result,
    overflow_files,
)
from draftsman.deliveries.delivery import Delegation, DeliveryKind, Message, Subject
from draftsman.deliveries.plain_text import (
    format_time,
    job_outcome_spans,
    job_outcome_text,
    missing_diff,
    notice_spans,
    pause_text,
    progress_text,
    render_plain,
    resolution_spans,
    shown_error,
    state_text,
    title_before,
)
from draftsman.deliveries.result_text import change_summary, counts_summary, pr_url
from draftsman.jobs.job import Source, Status
from draftsman.people.policy import Person
from draftsman.people.spans import ActorRef
from draftsman.questions.question import Question, QuestionKind
from draftsman.text_template import fill
from draftsman_bots import json_fields
from draftsman_bots.text import truncate, utf16_length
from draftsman_bots.trello.deliveries.markdown import (
    blockquote,
    bold,
    code,
    escape_truncated,
    link,
    one_line,
)
from draftsman_bots.trello.deliveries.member_names import MemberNames, with_names

# Text of a question on a card, with mentions and answer instructions.


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
        delegation_text = escape_truncated(delegation.text, 300)
        yield f"{delegation_text}, until {format_time(delegation.until)}."
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
            hidden = len(question.choices) - len(lines)
            job = question.name.partition("/")[0]
            return "\n".join(lines) + f"\n\n… and {hidden} more: `draftsman show {job}`"
        lines.append(line)
    return "\n".join(lines)


def _choice(number: int, choice: Mapping[str, Any], *, described: bool) -> str:
    note = choice.get("description") if described else None
    description = f" - {one_line(str(note), 400)}" if note else ""
    return f"{number}. {one_line(str(choice['label']), 200)}{description}"


def _context(snippet: str) -> Iterator[str]:
    """Yield the beginning of a question's context, after the statistics of a diff."""
    if is_diff(snippet):
        yield code(truncate(diffstat(snippet), LENGTH // 2))
    yield code(truncate("\n".join(snippet.splitlines()[:LINES]), LENGTH))
    if is_long(snippet, LINES):
        yield "Truncated. The full text is attached to the card."


def _people(people: Sequence[Person], names: MemberNames) -> str:
    mentions = ", ".join(_mention(person, names) for person in people[:MAX_MENTIONS])
    hidden = len(people) - MAX_MENTIONS
    return f"{mentions} and {hidden} more" if hidden > 0 else mentions


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


STATUS_EMOJI: Final = {
    Status.SCHEDULED: "⏰",
    Status.QUEUED: "⏳",
    Status.CLAIMED: "⏳",
    Status.RUNNING: "⚙️",
    Status.RESUMED: "⚙️",
    Status.RETRYING: "🔁",
    Status.WAITING_FOR_INPUT: "❓",
    Status.WAITING_FOR_APPROVAL: "❓",
    Status.COMPLETED: "✅",
    Status.FAILED: "❌",
    Status.DEAD_LETTER: "❌",
    Status.CANCELED: "🚫",
    Status.EXPIRED: "⌛",
}
DENIED_EMOJI: Final = "⛔"
"""Emoji of a job that failed because a person denied it."""
TRUNCATED_NOTICE: Final = "Truncated. The full text is attached to the card."
DATA_NOTICE: Final = "The data of the result is attached to the card."
_NO_NAMES: Final[MemberNames] = {}


def render(
    message: Message,
    names: MemberNames = _NO_NAMES,
    template: str | None = None,
    *,
    checklist: bool = False,
) -> str:
    """Return the body of a comment; `template` is the board's template for results.

    `checklist` tells whether the choices of the question are also a checklist of the card.
    """
    if message.kind is DeliveryKind.RESULT and template is not None:
        return fill(template, template_fields(message))
    return "\n\n".join(
        paragraph for paragraph in _paragraphs(message, names, checklist) if paragraph
    )


def template_fields(message: Message) -> dict[str, str]:
    """Return the fields of a template, escaped; missing fields are empty."""
    subject = message.subject
    result = message.subject.result or {}
    texts = {
        "title": subject.title,
        "status": _state(subject),
        "ending": job_outcome_text(subject),
        "summary": truncate(json_fields.string(result, "summary"), LENGTH),
        "repo": subject.repo,
        "agent": subject.agent,
        "invoker": subject.invoker,
        "error": truncate(subject.error or "", LENGTH // 4),
    }
    url = pr_url(result)
    changes = _changes(result)
    return {name: escape_truncated(text or "") for name, text in texts.items()} | {
        "job": subject.name,
        "pr_url": link(url) if url else "",
        "result": escape_truncated(truncate(changes, LENGTH // 4)),
    }


def _paragraphs(message: Message, names: MemberNames, checklist: bool) -> Iterator[str]:
    match message.kind:
        case DeliveryKind.STATUS:
            yield from _card(message, names)
        case DeliveryKind.QUESTION | DeliveryKind.REMINDER if message.question is not None:
            yield from _question(message, names, checklist)
        case DeliveryKind.QUESTION_CLOSED if message.question is not None:
            yield from _closed(message, names)
        case DeliveryKind.RESULT:
            yield from _result(message, names)
        case DeliveryKind.NOTICE:
            yield from _notice(message, names)
        case _:
            yield escape_truncated(render_plain(message))


def _card(message: Message, names: MemberNames) -> Iterator[str]:
    """Yield the status comment of a job, which is edited in place."""
    subject = message.subject
    yield f"{_headline(subject)}\n{_facts(subject, names)}"
    if progress := progress_text(message):
        yield "\n".join(escape_truncated(text, 300) for text in progress.split("\n"))
    if error := shown_error(subject):
        yield code(truncate(error, LENGTH // 4))


def _question(message: Message, names: MemberNames, checklist: bool) -> Iterator[str]:
    question = message.question
    payload = message.payload or {}
    assert question is not None  # noqa: S101
    if message.kind is DeliveryKind.REMINDER:
        yield escape_truncated(
            str(payload.get("text") or f"{question.name} is still waiting for an answer")
        )
    yield from render_question(
        question,
        message.subject.title,
        message.mentions,
        names,
        message.changes,
        checklist=checklist,
        delegation=message.delegation,
    )


def _closed(message: Message, names: MemberNames) -> Iterator[str]:
    """Yield the resolution of a question, without answer instructions."""
    question = message.question
    assert question is not None  # noqa: S101
    resolution = with_names(resolution_spans(question), names)
    yield escape_truncated(f"{question.name} {resolution}")
    text = blockquote(escape_truncated(question.text, 6000))
    title = title_before(question, message.subject.title)
    yield f"{bold(title, 200)} asked:\n{text}" if title else text


def _result(message: Message, names: MemberNames) -> Iterator[str]:
    subject = message.subject
    result = message.subject.result or {}
    yield _headline(subject)
    if subject.status is not Status.COMPLETED:  # the facts below show it
        outcome = with_names(job_outcome_spans(subject), names)
        yield escape_truncated(truncate(outcome, LENGTH // 2))
    if subject.group_stop:
        yield escape_truncated(subject.group_stop, 300)
    if (summary := json_fields.string(result, "summary")).strip():
        yield escape_truncated(truncate(summary, LENGTH // 2))
    if url := pr_url(result):
        yield link(url)
    if subject.usage:
        yield subject.usage
    if changes := _changes(result):
        yield escape_truncated(truncate(changes, LENGTH // 4))
    yield _facts(subject, names, outcome=False)
    if overflow_files(message):
        yield TRUNCATED_NOTICE if is_truncated_result(message) else DATA_NOTICE


def _notice(message: Message, names: MemberNames) -> Iterator[str]:
    payload = message.payload or {}
    prefix, *spans = notice_spans(message)
    text = truncate(with_names(spans, names), LENGTH)
    to = names.get(str(payload.get("to", "")))
    mention = f"@{to} " if to else ""
    notice = escape_truncated(f"{prefix}{text}", 2 * LENGTH)
    yield mention + notice
    if is_long(str(payload.get("text", ""))) and "to" not in payload:
        yield TRUNCATED_NOTICE


def _headline(subject: Subject) -> str:
    emoji = DENIED_EMOJI if subject.denied else STATUS_EMOJI[subject.status]
    return f"{emoji} **{subject.name}** {bold(subject.title, 500)}"


def _facts(subject: Subject, names: MemberNames, *, outcome: bool = True) -> str:
    """Return facts of a job; a result has shown the `outcome` of a denial or cancel before."""
    facts = [] if subject.denied else [escape_truncated(_state(subject), 200)]
    if pause := pause_text(subject):
        facts.append(escape_truncated(pause, 300))
    if outcome and (subject.status is Status.CANCELED or subject.denied):
        facts.append(escape_truncated(with_names(job_outcome_spans(subject, again=""), names), 300))
    invoker = with_names([ActorRef(subject.invoker)], names)
    for name, value in (
        ("", subject.repo),
        ("by ", subject.agent),
        ("for ", invoker),
        ("group ", subject.group),
    ):
        if value:
            facts.append(name + escape_truncated(value, 200))
    if subject.url and "://trello.com/c/" not in subject.url:
        facts.append(link(subject.url))
    return " · ".join(facts)


def _state(subject: Subject) -> str:
    state = state_text(subject)
    if subject.status is Status.RETRYING and subject.next_retry_at is not None:
        return f"{state} at {format_time(subject.next_retry_at)}"
    return state


def _changes(result: dict[str, Any]) -> str:
    return "\n".join(line for line in (change_summary(result), counts_summary(result)) if line)
