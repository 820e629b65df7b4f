"""Renderer of messages as comments of a forge. Pure.

Texts of jobs and people have no effect there; only people to whom a question is addressed are
mentioned.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import Final

from draftsman.agent_runs.changes.diff import is_diff
from draftsman.deliveries.action_text import action_text
from draftsman.deliveries.attachment import LENGTH, LINES, is_long, overflow_files
from draftsman.deliveries.delivery import DeliveryKind, File, Message, Subject
from draftsman.deliveries.plain_text import (
    format_time,
    job_outcome_spans,
    missing_diff,
    notice_spans,
    pause_text,
    progress_text,
    render_plain,
    resolution_text,
    shown_error,
    state_text,
)
from draftsman.deliveries.result_text import change_summary, counts_summary, pr_url
from draftsman.forges import untrusted_text
from draftsman.forges.untrusted_text import ZERO_WIDTH, truncate
from draftsman.jobs.job import Source, Status
from draftsman.people.policy import Person
from draftsman.people.spans import ActorRef, spans_text
from draftsman.questions.question import Question, QuestionKind
from draftsman_bots import json_fields

# Markdown of comments: inert text, the marker of a message, and files as code.


MARKER: Final = re.compile(r"<!-- draftsman message=(?P<id>[0-9a-f-]{36}) -->")
"""The last line of a comment that draftsman wrote."""
_LINK: Final = re.compile(r"\](?=[(\[:])")
_BINARY: Final = "\0"


def plain(text: str, limit: int) -> str:
    """Return an inert text whose code blocks are closed, without links that hide their URL."""
    return _LINK.sub(f"]{ZERO_WIDTH}", untrusted_text.block(text, limit))


def line(text: str, limit: int) -> str:
    """Return an inert text in a single line."""
    return _LINK.sub(f"]{ZERO_WIDTH}", untrusted_text.line(text, limit))


def quote(text: str, limit: int) -> str:
    """Return an inert text as a quotation."""
    return _LINK.sub(f"]{ZERO_WIDTH}", untrusted_text.quote(text, limit))


def fenced(text: str, kind: str = "") -> str:
    """Return code with a fence that it does not have, so that it cannot end it."""
    longest = max((len(ticks) for ticks in re.findall("`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{kind}\n{text}\n{fence}"


def with_marker(text: str, marker: str, limit: int) -> str:
    """Return a comment of at most `limit` characters, which ends with the marker."""
    end = f"\n\n<!-- draftsman message={marker} -->"
    return f"{truncate(text, max(limit - len(end), 0))}{end}" if text else end


def marker_of(body: str) -> str | None:
    """Return the marker in the last line of a comment: texts of people stand before it."""
    lines = body.rstrip().splitlines()
    match = MARKER.fullmatch(lines[-1].strip()) if lines else None
    return None if match is None else match["id"]


def render_file(job: str, file: File) -> str:
    """Return a file as a folded block of code; a binary file is encoded as base64."""
    try:
        text = file.data.decode()
    except UnicodeDecodeError:
        text = _BINARY
    note = ""
    if _BINARY in text:
        text = base64.b64encode(file.data).decode()
        note = " (base64)"
    name = line(file.name, 200)
    kind = "diff" if file.name.endswith((".patch", ".diff")) else ""
    summary = f"<details><summary>{name}{note}</summary>"
    return f"{job}: {name}\n\n{summary}\n\n{fenced(text, kind)}\n\n</details>"


EMOJI: Final = {
    Status.WAITING_FOR_INPUT: "❓",
    Status.WAITING_FOR_APPROVAL: "❓",
    Status.COMPLETED: "✅",
    Status.FAILED: "❌",
    Status.DEAD_LETTER: "❌",
    Status.CANCELED: "🚫",
    Status.EXPIRED: "⌛",
}
MAX_MENTIONS: Final = 10
MAX_CHOICES: Final = 50
TRUNCATED: Final = "Truncated. The full text is in the next comment."


def render(message: Message) -> str:
    """Return the text of a comment."""
    return "\n\n".join(paragraph for paragraph in _paragraphs(message) if paragraph)


def answer_instructions(question: Question) -> str:
    """Return how to answer in a comment."""
    name = question.name
    if question.kind is QuestionKind.APPROVAL:
        return f"To answer, comment `/approve {name}`, or `/deny {name}` and a reason."
    if not question.choices:
        return f"To answer, comment `/answer {name}` and your answer."
    free = " or your own text" if question.freeform_allowed else ""
    return f"To answer, comment `/answer {name}` and the number of a choice{free}."


def _paragraphs(message: Message) -> Iterator[str]:
    subject = message.subject
    question = message.question
    match message.kind:
        case DeliveryKind.STATUS:
            yield from _status(message)
        case DeliveryKind.QUESTION | DeliveryKind.REMINDER if question is not None:
            if message.kind is DeliveryKind.REMINDER:
                text = (message.payload or {}).get("text")
                yield line(str(text or f"{question.name} is still waiting for an answer"), 300)
            yield from _question(message, question)
        case DeliveryKind.QUESTION_CLOSED if question is not None:
            yield plain(f"{question.name} {resolution_text(question)}", LENGTH)
            yield quote(question.text, 6000)
        case DeliveryKind.RESULT:
            yield from _result(message)
        case DeliveryKind.NOTICE:
            text = spans_text(notice_spans(message))
            yield plain(text, LENGTH)
            if is_long(str((message.payload or {}).get("text", ""))):
                yield TRUNCATED
        case _:
            yield plain(render_plain(message), 2 * LENGTH)
    if message.kind is DeliveryKind.RESULT and subject.group_stop:
        yield line(subject.group_stop, 300)


def _status(message: Message) -> Iterator[str]:
    """Yield the status comment of a job, which is edited in place."""
    subject = message.subject
    yield f"{_headline(subject)}\n{_facts(subject)}"
    yield "\n".join(line(text, 300) for text in progress_text(message).split("\n"))
    if subject.status is Status.COMPLETED:
        yield from _result_facts(subject, LENGTH // 4)
    elif error := shown_error(subject):
        yield fenced(plain(error, LENGTH // 4))


def _question(message: Message, question: Question) -> Iterator[str]:
    verb = "asks for approval" if question.kind is QuestionKind.APPROVAL else "asks"
    yield f"❓ **{question.name}** {line(message.subject.title, 200)} {verb}:"
    yield quote(question.text, 6000)
    if (snippet := question.context_snippet) and snippet.strip():
        visible = plain("\n".join(snippet.splitlines()[:LINES]), LENGTH)
        yield fenced(visible, "diff" if is_diff(snippet) else "")
        if is_long(snippet, LINES):
            yield TRUNCATED
    if action := question.approved_action:
        yield f"If approved:\n{fenced(plain(action_text(action), LENGTH // 3))}"
    if message.changes:
        yield f"{line(message.changes, 300)}: `draftsman diff {question.name}`"
    yield _choices(question)
    if people := _people(message):
        yield f"For {people}"
    if (delegation := message.delegation) is not None:
        yield f"{line(delegation.text, 300)}, until {format_time(delegation.until)}."
    yield " ".join(_instructions(question))


def _choices(question: Question) -> str:
    """Return the choices as an ordered list, by whose numbers they can be chosen."""
    rows = []
    for number, choice in enumerate(question.choices[:MAX_CHOICES], 1):
        note = f" - {line(str(choice['description']), 200)}" if choice.get("description") else ""
        rows.append(f"{number}. {line(str(choice['label']), 200)}{note}")
    if (hidden := len(question.choices) - len(rows)) > 0:
        rows.append(f"\nand {hidden} more: `draftsman show D-{question.job}`")
    return "\n".join(rows)


def _people(message: Message) -> str:
    """Return the people to whom a question is addressed, mentioned if they are on this forge."""
    forge = message.target.partition("/")[0].casefold()
    names = ", ".join(_mention(person, forge) for person in message.mentions[:MAX_MENTIONS])
    hidden = len(message.mentions) - MAX_MENTIONS
    return f"{names} and {hidden} more" if hidden > 0 else names


def _mention(person: Person, forge: str) -> str:
    table, _, login = person.ids.get(Source.FORGE, "").partition(":")
    return f"@{login}" if login and table == forge else line(person.name, 100)


def _instructions(question: Question) -> Iterator[str]:
    yield answer_instructions(question)
    if question.kind is QuestionKind.APPROVAL and question.quorum > 1:
        yield f"Needs {question.quorum} approvals."
    if missing := missing_diff(question):
        yield f"{missing.capitalize()}."
    if question.escalated_at is not None and question.escalate_to:
        yield f"Escalated to {line(question.escalate_to, 100)}: no answer in time."
    if question.expires_at is not None:
        yield f"Expires at {format_time(question.expires_at)}."


def _result(message: Message) -> Iterator[str]:
    subject = message.subject
    yield _headline(subject)
    if subject.status is not Status.COMPLETED:
        yield plain(_outcome(subject), LENGTH // 2)
    yield from _result_facts(subject, LENGTH // 2)
    if subject.usage:
        yield line(subject.usage, 200)
    yield _facts(subject, outcome=False)
    if overflow_files(message):
        yield TRUNCATED


def _result_facts(subject: Subject, limit: int) -> Iterator[str]:
    """Yield the result of a job: its summary, pull request and changes."""
    result = subject.result or {}
    yield plain(json_fields.string(result, "summary"), limit)
    if url := pr_url(result):
        yield line(url, 500)
    changes = [text for text in (change_summary(result), counts_summary(result)) if text]
    yield plain("\n".join(changes), LENGTH // 4)


def _headline(subject: Subject) -> str:
    emoji = "⛔" if subject.denied else EMOJI.get(subject.status, "⏳")
    return f"{emoji} **{subject.name}** {line(subject.title, 300)}"


def _facts(subject: Subject, *, outcome: bool = True) -> str:
    """Return facts of a job; a result has shown the `outcome` of a denial or cancel before."""
    state = state_text(subject)
    if subject.status is Status.RETRYING and subject.next_retry_at is not None:
        state = f"{state} at {format_time(subject.next_retry_at)}"
    if outcome and (subject.denied or subject.status is Status.CANCELED):
        state = _outcome(subject, again="")
    elif subject.denied:
        state = ""
    facts = [
        state,
        pause_text(subject),
        subject.repo,
        subject.agent and f"by {subject.agent}",
        subject.invoker and f"for {subject.invoker}",
        subject.group and f"group {subject.group}",
    ]
    return " · ".join(line(fact, 300) for fact in facts if fact)


def _outcome(subject: Subject, again: str | None = None) -> str:
    """Return the outcome of a job; an account of a forge is its login, without a mention."""
    return "".join(
        span.name.rpartition(":")[2]
        if isinstance(span, ActorRef) and span.channel is Source.FORGE
        else str(span)
        for span in job_outcome_spans(subject, again)
    )
