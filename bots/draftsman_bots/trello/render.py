"""What a message looks like on a card: the body of a comment, in Markdown. Pure.

Whatever text comes in, a comment comes out that Trello takes once it is signed. Nobody is mentioned
but those whom a question is for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from draftsman.domain.attachment import LENGTH, is_long, wholes
from draftsman.domain.delivery import DeliveryKind, Message, Subject
from draftsman.domain.job import Status
from draftsman.domain.template import fill
from draftsman.domain.wording import change, details, ending, notice, plain, pr_url, settled
from draftsman_bots.text import clamped
from draftsman_bots.trello.asking import Names, asked
from draftsman_bots.trello.text import bold, code, escaped, link, quoted

MARKS: Final = {
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
DENIED: Final = "⛔"
"""Mark of a job that a person denied: it failed, and nothing crashed."""
UNTROUBLED: Final = frozenset({Status.CANCELED, Status.COMPLETED})
"""Statuses of which an earlier error is not shown."""
WHOLE: Final = "This is a part of it; the whole is attached to the card."
_VOTER: Final = re.compile(r"\btrello:\u200b?([0-9a-f]{24})\b")
_NOBODY: Final[Names] = {}


def render(message: Message, names: Names = _NOBODY, template: str | None = None) -> str:
    """Return what people read; `template` is the board's own for results."""
    if message.kind is DeliveryKind.RESULT and template is not None:
        return fill(template, values(message))
    return "\n\n".join(part for part in _parts(message, names) if part)


def values(message: Message) -> dict[str, str]:
    """Return the fields of a template, escaped; what there is none of is empty."""
    subject, result = message.subject, message.subject.result or {}
    texts = {
        "title": subject.title,
        "status": _state(subject),
        "ending": ending(subject),
        "summary": clamped(_text(result, "summary"), LENGTH),
        "repo": subject.repo,
        "agent": subject.agent,
        "invoker": subject.invoker,
        "error": clamped(subject.error or "", LENGTH // 4),
    }
    url, rest = pr_url(result), _rest(result)
    return {name: escaped(text or "") for name, text in texts.items()} | {
        "job": subject.name,
        "pr_url": link(url) if url else "",
        "result": escaped(clamped(rest, LENGTH // 4)),
    }


def _parts(message: Message, names: Names) -> Iterator[str]:
    match message.kind:
        case DeliveryKind.STATUS:
            yield from _card(message.subject, names)
        case DeliveryKind.QUESTION | DeliveryKind.REMINDER if message.question is not None:
            yield from _question(message, names)
        case DeliveryKind.QUESTION_CLOSED if message.question is not None:
            yield from _closed(message, names)
        case DeliveryKind.RESULT:
            yield from _result(message, names)
        case DeliveryKind.NOTICE:
            yield from _notice(message, names)
        case _:
            yield escaped(plain(message))


def _card(subject: Subject, names: Names) -> Iterator[str]:
    """Yield the one comment of a job that is rewritten as it moves."""
    yield f"{_headline(subject)}\n{_facts(subject, names)}"
    if subject.error and not subject.denied and subject.status not in UNTROUBLED:
        yield code(clamped(subject.error, LENGTH // 4))


def _question(message: Message, names: Names) -> Iterator[str]:
    question, payload = message.question, message.payload or {}
    assert question is not None  # noqa: S101
    if message.kind is DeliveryKind.REMINDER:
        yield escaped(str(payload.get("text") or f"{question.name} still waits for an answer"))
    yield from asked(question, message.subject.title, message.asked, names)


def _closed(message: Message, names: Names) -> Iterator[str]:
    """Yield what became of a question: nothing says how to answer any more."""
    question = message.question
    assert question is not None  # noqa: S101
    yield _named(escaped(f"{question.name} {settled(question)}"), names)
    yield f"{bold(message.subject.title, 200)} asked:\n{quoted(escaped(question.text, 6000))}"


def _result(message: Message, names: Names) -> Iterator[str]:
    subject, result = message.subject, message.subject.result or {}
    yield _headline(subject)
    if subject.status is not Status.COMPLETED:  # what stands below says that it is
        yield _named(escaped(clamped(ending(subject), LENGTH // 2)), names)
    if (summary := _text(result, "summary")).strip():
        yield escaped(clamped(summary, LENGTH // 2))
    if url := pr_url(result):
        yield link(url)
    if rest := _rest(result):
        yield escaped(clamped(rest, LENGTH // 4))
    yield _facts(subject, names)
    if wholes(message):
        yield WHOLE


def _notice(message: Message, names: Names) -> Iterator[str]:
    payload = message.payload or {}
    text = str(payload.get("text", ""))
    to = names.get(str(payload.get("to", "")))
    address = f"@{to} " if to else ""
    said = escaped(notice(message.subject, clamped(text, LENGTH)), 2 * LENGTH)
    yield address + _named(said, names)
    if is_long(text) and "to" not in payload:
        yield WHOLE


def _headline(subject: Subject) -> str:
    mark = DENIED if subject.denied else MARKS[subject.status]
    return f"{mark} **{subject.name}** {bold(subject.title, 500)}"


def _facts(subject: Subject, names: Names) -> str:
    facts = [] if subject.denied else [escaped(_state(subject), 200)]
    if subject.status is Status.CANCELED or subject.denied:
        facts.append(_named(escaped(ending(subject, again=""), 300), names))
    for name, value in (("", subject.repo), ("by ", subject.agent), ("for ", subject.invoker)):
        if value:
            facts.append(name + _named(escaped(value, 200), names))
    if subject.url and "://trello.com/c/" not in subject.url:
        facts.append(link(subject.url))
    return " · ".join(facts)


def _state(subject: Subject) -> str:
    state = str(subject.status).replace("_", " ")
    if subject.status is Status.RETRYING and subject.next_retry_at is not None:
        return f"{state} at {subject.next_retry_at.isoformat(sep=' ', timespec='seconds')}"
    return state


def _named(text: str, names: Names) -> str:
    """Return the text with members by their names, at which no bell rings."""
    return _VOTER.sub(lambda match: escaped(names.get(match[1], match[0]), 200), text)


def _text(result: dict[str, Any], name: str) -> str:
    found = result.get(name)
    return found if isinstance(found, str) else ""


def _rest(result: dict[str, Any]) -> str:
    return "\n".join(said for said in (change(result), details(result)) if said)
