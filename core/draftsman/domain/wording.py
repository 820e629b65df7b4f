"""What a message says in plain text, for channels without markup. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from hashlib import sha256
from typing import Any, Final, assert_never

from draftsman.domain.action import action_text
from draftsman.domain.answer import Verdict
from draftsman.domain.delivery import DeliveryKind, Message, Subject
from draftsman.domain.diff import is_diff
from draftsman.domain.job import Status
from draftsman.domain.question import Question, QuestionKind, QuestionStatus
from draftsman.domain.text import is_link

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
_NOUNS: Final = {"approved": "approval", "denied": "denial"}
_CHOICES: Final = 10
"""Choices that a notification names."""
_COUNTS: Final = 12
"""Numbers of a result that are shown."""
_NAME: Final = re.compile(r"\w[\w -]{0,39}")
"""What a number of a result may be called to be shown."""
Numbers = dict[str, int | float]


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
        case DeliveryKind.QUESTION_CLOSED if question is not None:
            yield f"{question.name} {settled(question)}"
            yield f"it was: {question.text}"
        case DeliveryKind.FILE:
            yield f"{subject.name}: file {payload.get('name')}"
        case DeliveryKind.NOTICE:
            yield notice(subject, str(payload.get("text", "")))
        case DeliveryKind.QUESTION | DeliveryKind.REMINDER | DeliveryKind.QUESTION_CLOSED:
            yield f"{subject.name}: {message.kind}"
        case _:
            assert_never(message.kind)


def notice(subject: Subject, text: str) -> str:
    """Return a notice that begins with its job's name, once: the text may begin with it."""
    named = text.startswith(subject.name) and not text[len(subject.name) :][:1].isdigit()
    return text if named else f"{subject.name}: {text}"


def brief(message: Message, reply: str = "reply in this thread") -> str:
    """Return the message as the notification of a chat says it, whose buttons stand below.

    Of a result it has what people wrote, and no data; of many choices the first. `reply` is how
    an answer in words is given.
    """
    subject, question, payload = message.subject, message.question, message.payload or {}
    if message.kind is DeliveryKind.RESULT:
        said = written(subject.result or {})
        return "\n".join([f"{_headline(subject)} {ending(subject, again='')}", *said])
    waits = message.kind is DeliveryKind.STATUS and subject.status is Status.RETRYING
    if waits and subject.next_retry_at is not None:
        when = moment(subject.next_retry_at)
        return f"{_headline(subject)} tries again at {when}: {subject.error}"
    asks = message.kind in (DeliveryKind.QUESTION, DeliveryKind.REMINDER)
    if not asks or question is None:
        return plain(message)
    lines = list(_asked(question, reply))
    if message.kind is DeliveryKind.REMINDER:
        lines.insert(0, str(payload.get("text") or f"{question.name} still waits for an answer"))
    return "\n".join(lines)


def _asked(question: Question, reply: str) -> Iterator[str]:
    gate = question.kind is QuestionKind.APPROVAL
    yield f"{question.name} {'asks for approval' if gate else 'asks'}: {question.text}"
    yield from (f"{n}. {one['label']}" for n, one in enumerate(question.choices[:_CHOICES], 1))
    if (more := len(question.choices) - _CHOICES) > 0:
        yield f"and {more} more"
    if question.expires_at is not None:
        yield f"expires at {moment(question.expires_at)}"
    how = "approve, or deny and why" if gate else "your answer"
    yield f"{reply}: {how}"


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


def pr_url(result: Mapping[str, Any]) -> str | None:
    """Return the page of the pull request that a result or its agent's data names."""
    for place in (result, result.get("data")):
        url = place.get("pr_url") if isinstance(place, Mapping) else None
        if isinstance(url, str) and is_link(url.strip()):
            return url.strip()
    return None


def checks(result: Mapping[str, Any]) -> str:
    """Return how many validators passed: `validation 2 of 3 passed`; or ""."""
    ran = result.get("validation")
    if not isinstance(ran, list) or not ran:
        return ""
    passed = sum(isinstance(one, Mapping) and one.get("passed") is True for one in ran)
    return f"validation {passed} of {len(ran)} passed"


def details(result: Mapping[str, Any]) -> str:
    """Return what else can be counted: `validation 2 of 3 passed, lines 7`; or ""."""
    numbers, _ = _parted(result)
    counts = [f"{name} {_short(number)}" for name, number in numbers.items()]
    return ", ".join(text for text in (checks(result), *counts) if text)


def fields(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that `written`, `change` and `checks` do not put in words."""
    worded = _worded(result)
    return {key: value for key, value in result.items() if key not in worded}


def rest(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the raw data of a result: what no message shows, and a file holds."""
    return _parted(result)[1]


def written(result: Mapping[str, Any]) -> list[str]:
    """Return the summary and the pull request of a result."""
    summary = result.get("summary")
    return [text for text in (summary, pr_url(result)) if isinstance(text, str) and text.strip()]


def _parted(result: Mapping[str, Any]) -> tuple[Numbers, dict[str, Any]]:
    """Return the numbers of a result and of its agent's data, and everything that has no words."""
    hidden = _worded(result)
    data = result.get("data")
    if not isinstance(data, Mapping):
        return _numbered(result, hidden, _COUNTS)
    numbers, left = _numbered(result, hidden | {"data"}, _COUNTS)
    more, inner = _numbered(data, hidden, _COUNTS - len(numbers))
    return more | numbers, left | ({"data": inner} if inner else {})


def _numbered(
    table: Mapping[str, Any], hidden: set[str], most: int
) -> tuple[Numbers, dict[str, Any]]:
    """Return the numbers of a table, so many at most, and the rest of it."""
    numbers: Numbers = {}
    left: dict[str, Any] = {}
    for key, value in table.items():
        if key in hidden or not value:
            continue
        found = _numbers(str(key), value)
        if found and len(numbers) + len(found) <= most:
            numbers |= found
        else:
            left[str(key)] = value
    return numbers, left


def _worded(result: Mapping[str, Any]) -> set[str]:
    """Return the keys of a result that `written`, `change` and `details` put in words."""
    found = set(_CHANGE) if change(result) else set()
    kinds = {"summary": str, "validation": list, "validated": bool}
    found |= {key for key, kind in kinds.items() if isinstance(result.get(key), kind)}
    return found | {"pr_url"} if pr_url(result) else found


def _numbers(key: str, value: Any) -> Numbers:
    """Return the number of this name, or those of a table of numbers; else nothing."""
    table = value if isinstance(value, Mapping) else {"": value}
    found = {f"{key} {name}".strip().replace("_", " "): number for name, number in table.items()}
    fine = all(
        isinstance(number, int | float) and not isinstance(number, bool) and _NAME.fullmatch(name)
        for name, number in found.items()
    )
    return found if fine else {}


def _short(number: int | float) -> str:
    return f"{number:g}" if isinstance(number, float) else str(number)


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
    return "".join(settled_parts(question))


def settled_parts(question: Question) -> tuple[str, str]:
    """Return the two parts of `settled`: how and by whom, and what that person wrote."""
    if question.status is QuestionStatus.OPEN:
        return "is open", ""
    how = question.resolution or {}
    outcome = how.get("outcome", str(question.status))
    by = ", ".join(how.get("by", ())) or (how["via"] if how.get("via") == "policy" else "")
    said = how.get("value") or how.get("text") or how.get("reason")
    verb = outcome if outcome == "expired" else f"was {outcome}"
    own = ", who asked for the job" if how.get("self_approved") else ""
    return f"{verb}{f' by {by}{own}' if by else ''}", f": {said}" if said else ""


def already_recorded(verdict: Verdict) -> str:
    """Return what is said to a person whose earlier response counts, as plain text."""
    if not verdict.resolved:
        return (
            f"{verdict.name}: your approval is already recorded, {verdict.votes} of"
            f" {verdict.quorum}."
        )
    ended = verdict.resolution or {}
    kind = _NOUNS.get(str(ended.get("outcome")), "answer")
    what = ended.get("value") or ended.get("text") or ""
    return f"{verdict.name}: your {kind} is already recorded{f': {what}' if what else ''}."


def ending(subject: Subject, again: str | None = None) -> str:
    """Return how a job ended, and why where it did not complete.

    `again` is what to do for another try; unset: the command of a terminal.
    """
    return "".join(ending_parts(subject, again))


def ending_parts(subject: Subject, again: str | None = None) -> tuple[str, str]:
    """Return the two parts of `ending`: how and by whom, and the words of a person or an error."""
    again = f"draftsman retry {subject.name}" if again is None else again
    then = f"; again: {again}" if again else ""
    match subject.status:
        case Status.CANCELED:
            why = f": {subject.cancel_reason}" if subject.cancel_reason else ""
            return f"was canceled{f' by {subject.canceled_by}' if subject.canceled_by else ''}", why
        case Status.FAILED if subject.denied:
            # the database words a denial: `denied by VOTER: REASON`
            head, colon, words = (subject.error or "denied").partition(": ")
            return f"was {head}", f"{colon}{words}{then}"
        case Status.FAILED | Status.DEAD_LETTER:
            dead = " for the last time" if subject.status is Status.DEAD_LETTER else ""
            return f"failed{dead}", f": {subject.error}{then}"
        case Status.EXPIRED:
            return "expired", f": nobody answered in time{then}"
        case _:
            return str(subject.status).replace("_", " "), ""


def _headline(subject: Subject) -> str:
    return f"{subject.name} {subject.title!r}"


def _state(subject: Subject) -> str:
    state = str(subject.status).replace("_", " ")
    if subject.status is Status.RETRYING and subject.next_retry_at is not None:
        return f"{state} at {subject.next_retry_at.isoformat(timespec='seconds')}: {subject.error}"
    return state


def _result(result: dict[str, Any] | None) -> Iterator[str]:
    if result:
        yield from written(result)
        yield from (said for said in (change(result), details(result)) if said)
