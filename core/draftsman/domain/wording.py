"""What a message says in plain text, for channels without markup. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from hashlib import sha256
from typing import Any, Final, assert_never

from draftsman.domain.action import action_text
from draftsman.domain.delivery import DeliveryKind, Message, Subject
from draftsman.domain.diff import is_diff
from draftsman.domain.job import Status
from draftsman.domain.question import Question, QuestionKind, QuestionStatus

_WRITTEN: Final = ("summary", "pr_url")
"""What of a result is for people; the rest of it is data."""
_CHANGE: Final = ("branch", "commit", "files_changed", "insertions", "deletions")
"""What of a result says what was changed: `change` puts it in words."""
_ENDED: Final = {
    Status.FAILED: "failed",
    Status.DEAD_LETTER: "failed for the last time",
    Status.CANCELED: "was canceled",
    Status.EXPIRED: "expired",
}
_NOTHING: Final = sha256(b"").hexdigest()
"""SHA-256 of the patch of a run that changed nothing."""
_CHOICES: Final = 10
"""Choices that a notification names."""
_SHORT: Final = 200
"""Characters of a value of a result that is shown in its line."""


def plain(message: Message) -> str:
    """Return the whole message as lines of text."""
    return "\n".join(_lines(message))


def _lines(message: Message) -> Iterator[str]:
    subject, question, payload = message.subject, message.question, message.payload or {}
    match message.kind:
        case DeliveryKind.STATUS:
            ended = "was denied" if subject.denied else _ENDED.get(subject.status)
            yield f"{_headline(subject)} {ended or f'is {_state(subject)}'}"
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
    """Return the message as the notification of a chat says it, whose buttons stand below.

    Of a result it has what people wrote, and no data; of many choices the first.
    """
    subject, question, payload = message.subject, message.question, message.payload or {}
    if message.kind is DeliveryKind.RESULT:
        said = [str(text) for key in _WRITTEN if (text := (subject.result or {}).get(key))]
        return "\n".join([f"{_headline(subject)} {ending(subject, again='')}", *said])
    waits = message.kind is DeliveryKind.STATUS and subject.status is Status.RETRYING
    if waits and subject.next_retry_at is not None:
        when = moment(subject.next_retry_at)
        return f"{_headline(subject)} tries again at {when}: {subject.error}"
    asks = message.kind in (DeliveryKind.QUESTION, DeliveryKind.REMINDER)
    if not asks or question is None:
        return plain(message)
    lines = list(_asked(question))
    if message.kind is DeliveryKind.REMINDER:
        lines.insert(0, str(payload.get("text") or f"{question.name} still waits for an answer"))
    return "\n".join(lines)


def _asked(question: Question) -> Iterator[str]:
    gate = question.kind is QuestionKind.APPROVAL
    yield f"{question.name} {'asks for approval' if gate else 'asks'}: {question.text}"
    yield from (f"{n}. {one['label']}" for n, one in enumerate(question.choices[:_CHOICES], 1))
    if (more := len(question.choices) - _CHOICES) > 0:
        yield f"and {more} more"
    if question.expires_at is not None:
        yield f"expires at {moment(question.expires_at)}"
    how = "approve, or deny and why" if gate else "your answer"
    yield f"reply in this thread: {how}"


def moment(when: datetime) -> str:
    """Return a time as people write it: `22 Nov 2026, 07:48 UTC`."""
    return f"{when.day} {when:%b %Y, %H:%M %Z}".rstrip()


def change(result: Mapping[str, Any]) -> str:
    """Return what was changed: `branch fix/it, commit 0123abcd, 1 file changed, +2 -1`; or ""."""
    found = {key: result.get(key) for key in _CHANGE}
    said = [f"branch {found['branch']}"] if isinstance(found["branch"], str) else []
    if isinstance(found["commit"], str):
        said.append(f"commit {found['commit'][:12]}")
    if isinstance(files := found["files_changed"], int):
        said.append(f"{files} file{'' if files == 1 else 's'} changed")
    lines = [(sign, found[key]) for sign, key in (("+", "insertions"), ("-", "deletions"))]
    if counted := " ".join(f"{sign}{n}" for sign, n in lines if isinstance(n, int)):
        said.append(counted)
    return ", ".join(said)


def details(result: Mapping[str, Any]) -> str:
    """Return everything else of a result, a `key: value` in each line; long values are cut."""
    hidden = (*_WRITTEN, *(_CHANGE if change(result) else ()))
    rest = {key: value for key, value in sorted(result.items()) if key not in hidden}
    return "\n".join(f"{key}: {_value(value)}" for key, value in rest.items() if value)


def _value(value: Any) -> str:
    said = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    line = " ".join(said.split())
    return line if len(line) <= _SHORT else f"{line[: _SHORT - 1]}…"


def asking(question: Question) -> Iterator[str]:
    """Yield the question, what can be chosen, until when, and how to answer."""
    gate = question.kind is QuestionKind.APPROVAL
    yield f"{question.name} {'asks for approval' if gate else 'asks'}: {question.text}"
    yield from (f"| {line}" for line in (question.context_snippet or "").splitlines())
    if question.action:
        yield f"if approved: {action_text(question.action)}"
    if missing := missing_diff(question):
        yield missing
    for place, choice in enumerate(question.choices, 1):
        note = f" - {choice['description']}" if choice.get("description") else ""
        yield f"  {place}  {choice['label']}{note}"
    if question.escalated_at is not None:
        yield f"nobody answered in time: it goes to {question.escalate_to} as well"
    if question.expires_at is not None:
        yield f"expires at {question.expires_at.isoformat(timespec='seconds')}"
    yield how_to_answer(question)


def missing_diff(question: Question) -> str:
    """Return why an approval comes without a patch; empty for one with a patch, and for others."""
    if question.kind is not QuestionKind.APPROVAL or is_diff(question.context_snippet or ""):
        return ""
    known = {None: "diff not available", _NOTHING: "no changes so far"}
    return known.get(question.patch_sha256, "")


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


def ending(subject: Subject, again: str | None = None) -> str:
    """Return how a job ended, and why where it did not complete.

    `again` is what to do for another try; unset: the command of a terminal.
    """
    again = f"draftsman retry {subject.name}" if again is None else again
    then = f"; again: {again}" if again else ""
    match subject.status:
        case Status.CANCELED:
            why = f": {subject.cancel_reason}" if subject.cancel_reason else ""
            return f"was canceled{f' by {subject.canceled_by}' if subject.canceled_by else ''}{why}"
        case Status.FAILED if subject.denied:
            return f"was {subject.error or 'denied'}{then}"
        case Status.FAILED | Status.DEAD_LETTER:
            dead = " for the last time" if subject.status is Status.DEAD_LETTER else ""
            return f"failed{dead}: {subject.error}{then}"
        case Status.EXPIRED:
            return f"expired: nobody answered in time{then}"
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
