"""Renderer of messages as Markdown comments. Pure.

Any text gives a comment that Trello accepts after the marker is added. Only the people whom a
question is addressed to are mentioned.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from draftsman.deliveries.attachment import (
    LENGTH,
    is_long,
    is_truncated_result,
    overflow_files,
)
from draftsman.deliveries.delivery import DeliveryKind, Message, Subject
from draftsman.deliveries.plain_text import (
    format_time,
    job_outcome_spans,
    job_outcome_text,
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
from draftsman.jobs.job import Status
from draftsman.people.spans import ActorRef
from draftsman.text_template import fill
from draftsman_bots import json_fields
from draftsman_bots.text import truncate
from draftsman_bots.trello.deliveries.markdown import blockquote, bold, code, escape_truncated, link
from draftsman_bots.trello.deliveries.member_names import MemberNames, with_names
from draftsman_bots.trello.deliveries.question_text import render_question

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
    return "\n\n".join(part for part in _parts(message, names, checklist) if part)


def template_fields(message: Message) -> dict[str, str]:
    """Return the fields of a template, escaped; missing fields are empty."""
    subject, result = message.subject, message.subject.result or {}
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
    url, rest = pr_url(result), _rest(result)
    return {name: escape_truncated(text or "") for name, text in texts.items()} | {
        "job": subject.name,
        "pr_url": link(url) if url else "",
        "result": escape_truncated(truncate(rest, LENGTH // 4)),
    }


def _parts(message: Message, names: MemberNames, checklist: bool) -> Iterator[str]:
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
    question, payload = message.question, message.payload or {}
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
    subject, result = message.subject, message.subject.result or {}
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
    if rest := _rest(result):
        yield escape_truncated(truncate(rest, LENGTH // 4))
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


def _rest(result: dict[str, Any]) -> str:
    return "\n".join(line for line in (change_summary(result), counts_summary(result)) if line)
