"""What a message says in plain text, for channels without markup. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final, assert_never

from draftsman.domain.delivery import DeliveryKind, Message, Subject
from draftsman.domain.job import Status
from draftsman.domain.question import Question, QuestionKind, QuestionStatus

_WRITTEN: Final = ("summary", "pr_url")
"""What of a result is for people; the rest of it is data."""


def plain(message: Message) -> str:
    """Return the whole message as lines of text."""
    return "\n".join(_lines(message))


def _lines(message: Message) -> Iterator[str]:
    subject, question, payload = message.subject, message.question, message.payload or {}
    match message.kind:
        case DeliveryKind.STATUS:
            yield f"{_headline(subject)} is {_state(subject)}"
        case DeliveryKind.RESULT:
            yield f"{_headline(subject)} {ending(subject)}"
            yield from _result(subject.result)
        case DeliveryKind.QUESTION | DeliveryKind.REMINDER if question is not None:
            if message.kind is DeliveryKind.REMINDER:
                yield str(payload.get("text") or f"{question.name} still waits for an answer")
            yield from asking(question)
        case DeliveryKind.SETTLE if question is not None:
            yield f"{question.name} {settled(question)}"
            yield f"it was: {question.text}"
        case DeliveryKind.FILE:
            yield f"{subject.name}: file {payload.get('name')}"
        case DeliveryKind.NOTICE:
            yield f"{subject.name}: {payload.get('text')}"
        case DeliveryKind.QUESTION | DeliveryKind.REMINDER | DeliveryKind.SETTLE:
            yield f"{subject.name}: {message.kind}"
        case _:
            assert_never(message.kind)


def brief(message: Message) -> str:
    """Return the message as a notification says it: of a result what people wrote, and no data."""
    result = message.subject.result
    if message.kind is not DeliveryKind.RESULT or result is None:
        return plain(message)
    said: dict[str, Any] = {key: result[key] for key in _WRITTEN if key in result}
    return plain(replace(message, subject=replace(message.subject, result=said)))


def asking(question: Question) -> Iterator[str]:
    """Yield the question, what can be chosen, until when, and how to answer."""
    gate = question.kind is QuestionKind.APPROVAL
    yield f"{question.name} {'asks for approval' if gate else 'asks'}: {question.text}"
    yield from (f"| {line}" for line in (question.context_snippet or "").splitlines())
    if question.action:
        yield f"allows: {json.dumps(question.action, ensure_ascii=False, sort_keys=True)}"
    for place, choice in enumerate(question.choices, 1):
        note = f" - {choice['description']}" if choice.get("description") else ""
        yield f"  {place}  {choice['label']}{note}"
    if question.escalated_at is not None:
        yield f"nobody answered in time: it goes to {question.escalate_to} as well"
    if question.expires_at is not None:
        yield f"expires at {question.expires_at.isoformat(timespec='seconds')}"
    yield how_to_answer(question)


def how_to_answer(question: Question) -> str:
    """Return what to type."""
    if question.kind is QuestionKind.APPROVAL:
        return f"draftsman approve {question.name}, or draftsman deny {question.name} --reason …"
    if not question.choices:
        return f"draftsman answer {question.name} 'your answer'"
    own = ", or your own words" if question.freeform_allowed else ""
    return f"draftsman answer {question.name} NUMBER{own}"


def settled(question: Question) -> str:
    """Return how a question ended and by whom: `was answered by anna: red`."""
    if question.status is QuestionStatus.OPEN:
        return "is open"
    how = question.resolution or {}
    outcome = how.get("outcome", str(question.status))
    by = ", ".join(how.get("by", ())) or (how["via"] if how.get("via") == "policy" else "")
    said = how.get("value") or how.get("text") or how.get("reason")
    verb = outcome if outcome == "expired" else f"was {outcome}"
    own = ", who asked for the job" if how.get("self_approved") else ""
    return f"{verb}{f' by {by}{own}' if by else ''}{f': {said}' if said else ''}"


def ending(subject: Subject) -> str:
    """Return how a job ended, and why where it did not complete."""
    match subject.status:
        case Status.CANCELED:
            why = f": {subject.cancel_reason}" if subject.cancel_reason else ""
            return f"was canceled{f' by {subject.canceled_by}' if subject.canceled_by else ''}{why}"
        case Status.FAILED | Status.DEAD_LETTER:
            dead = " for the last time" if subject.status is Status.DEAD_LETTER else ""
            return f"failed{dead}: {subject.error}; again: draftsman retry {subject.name}"
        case Status.EXPIRED:
            return f"expired: nobody answered in time; again: draftsman retry {subject.name}"
        case _:
            return str(subject.status).replace("_", " ")


def _headline(subject: Subject) -> str:
    return f"{subject.name} {subject.title!r}"


def _state(subject: Subject) -> str:
    state = str(subject.status).replace("_", " ")
    if subject.status is Status.RETRYING and subject.next_retry_at is not None:
        return f"{state} at {subject.next_retry_at.isoformat(timespec='seconds')}: {subject.error}"
    return state


def _result(result: dict[str, Any] | None) -> Iterator[str]:
    if not result:
        return
    if isinstance(summary := result.get("summary"), str):
        yield summary
    if isinstance(url := result.get("pr_url"), str):
        yield url
    if rest := {key: value for key, value in result.items() if key not in _WRITTEN}:
        yield json.dumps(rest, ensure_ascii=False)
