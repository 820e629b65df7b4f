"""Answers to questions: parsing, votes and results. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from draftsman.errors import CommandHint, NotPermitted, UsageError, with_hint
from draftsman.ids import question_name
from draftsman.jobs.job import Status
from draftsman.people.spans import ActorRef, Spans, actor_spans, decode_spans, spans_text
from draftsman.questions.answer_kind import NOUNS, AnswerKind, normalize_answer
from draftsman.questions.choice_matching import is_nearly, matching_key
from draftsman.questions.question import (
    BUDGET_KEY,
    Decision,
    OnDeny,
    Question,
    QuestionKind,
    QuestionStatus,
    Resolution,
)
from draftsman.text import clean

if TYPE_CHECKING:
    from draftsman.questions.response import Response


MAX_AMOUNT: Final = 1e12
_AMOUNT: Final = re.compile(r"(?:add\s+)?\$?\s*(\d[\d,]*(?:\.\d+)?)\s*(?:\$|usd|tokens)?", re.I)
_DIGITS: Final = r"[0-9]{1,3}[.)]?"
_NUMBER: Final = re.compile(_DIGITS)
"""A text that may be meant as the number of a choice."""
_ENDINGS: Final = ".)! "
_WRAPPING: Final = "\"'`*_“”„‟‘’‚‛«»‹›「」"  # noqa: RUF001
"""Characters at the end of an answer that people add to the name or number of a choice."""
_QUOTED: Final = re.compile(rf"[{_WRAPPING}](.+)[{_WRAPPING}]")
"""A text that is not meant as a choice."""


class NoSuchChoice(UsageError):
    """An answer is rather a mistyped choice than a text: a number, or nearly a choice's name.

    `text` is the answer, and `problem` what is wrong with it, without the question's name. It is an
    answer as text if it is written as `as_text` writes it.
    """

    def __init__(self, question: Question, text: str, problem: str) -> None:
        hint = f"for an answer that is this text, write {_in_quotes(text)}, with the quotes"
        super().__init__(with_hint(f"{question.name}: {problem}", hint))
        self.text = text
        self.problem = problem


def as_text(question: Question, text: str) -> str:
    """Return how a text is written that is no choice: in quotes, if it looks like a choice."""
    return text if _mistyped(question, text) is None else _in_quotes(text)


def _in_quotes(text: str) -> str:
    return f'"{text}"'


def is_number(text: str) -> bool:
    """Return whether a text may be the number of a choice, or is such a number in quotes."""
    quoted = _QUOTED.fullmatch(text)
    return bool(_NUMBER.fullmatch(quoted[1] if quoted else text))


@dataclass(frozen=True, slots=True)
class ParsedAnswer:
    """An answer to a question: the value of a choice, or free text."""

    value: str | None
    text: str | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a response.

    `resolved` tells whether the question is resolved, which a vote below the quorum does not do,
    and `resolution` how. For a `duplicate` source event, `accepted` and `reason` are those of the
    first response, and `resolved` is current. `recorded` marks a refused response of a voter whose
    earlier response counts. `reason_spans` is `reason` with references to the people in it.
    """

    job: int
    question: int
    accepted: bool
    resolved: bool
    reason: str | None = None
    duplicate: bool = False
    resolution: dict[str, Any] | None = None
    job_status: str | None = None
    paused: bool = False
    """Whether the job is paused, and goes on after its pause."""
    votes: int = 0
    quorum: int = 1
    recorded: bool = False
    reason_spans: Spans = ()
    answer_text: str = ""
    """The answer as people read it: the label of the choice, or free text."""
    also: tuple[str, ...] = ()
    """The identical questions of other jobs that it has answered: `D-143/1`."""
    closed_at: datetime | None = None
    """When the question was answered or expired, if the response was too late for it."""
    asked_again: int | None = None
    """The question that has replaced it."""

    @property
    def name(self) -> str:
        """Display name of the question: `D-142/2`."""
        return question_name(self.job, self.question)


@dataclass(frozen=True, slots=True)
class LockedQuestion:
    """A question under its job's lock.

    `due` says whether it has expired, and `paused` whether its job is paused.
    """

    question: Question
    due: bool
    paused: bool
    job_status: Status
    invoker: str
    asked_again: int | None = None
    """The question that has replaced it; None unless it is superseded."""

    def takes_answers(self, at: datetime | None = None) -> bool:
        """Return whether the question is open and not expired: at a time, by default now."""
        expires_at = self.question.expires_at
        is_due = self.due and (at is None or expires_at is None or expires_at <= at)
        return self.question.status is QuestionStatus.OPEN and not is_due

    def verdict(
        self,
        accepted: bool,
        refusal: Spans | None,
        *,
        duplicate: bool = False,
        is_late: bool = False,
    ) -> Verdict:
        """Return the verdict on a response that does not resolve the question."""
        question = self.question
        return Verdict(
            question.job,
            question.ordinal,
            accepted,
            resolved=question.status is not QuestionStatus.OPEN,
            reason=None if refusal is None else spans_text(refusal),
            reason_spans=refusal or (),
            duplicate=duplicate,
            resolution=question.resolution,
            answer_text=question.answer_text(),
            job_status=self.job_status,
            paused=self.paused,
            quorum=question.quorum,
            closed_at=question.closed_at if is_late else None,
            asked_again=self.asked_again,
        )


@dataclass(frozen=True, slots=True)
class Answer:
    """A row of `job_answers`."""

    id: int
    job: int
    question: int
    kind: str
    source: str
    source_event_id: str
    responder_id: str
    responder_display_name: str | None
    voter: str
    payload: dict[str, Any]
    accepted: bool
    reason: str | None
    created_at: datetime


def parse_answer(question: Question, response: Response) -> ParsedAnswer:
    """Parse the response to an `input` question.

    A choice is matched by value, label or number, in this order, as `matching_key` compares them;
    if none matches, without `.`, `)` and `!` at the end, then without quotes, too. A control sends
    the value, or the number as `choice`. Raises UsageError with what is allowed if none matches,
    and for free text of another kind than asked. A number that no choice has, and nearly the name
    of a choice, are refused with NoSuchChoice also where free text is allowed, unless they are in
    quotes: they are rather a mistyped choice than a text.
    """
    if response.choice is not None:
        return ParsedAnswer(_value_of(question, response.choice), None)
    text = (response.text or "").strip()
    if not text:
        raise UsageError(f"{question.name}: the answer is empty; {_allowed(question)}")
    quoted = _QUOTED.fullmatch(text)
    if quoted and _mistyped(question, quoted[1]) is not None:
        return ParsedAnswer(None, quoted[1])
    if (value := _chosen(question, text)) is not None:
        return ParsedAnswer(value, None)
    if (problem := _mistyped(question, text)) is not None:
        raise NoSuchChoice(question, text, problem)
    if question.freeform_allowed:
        if question.key == BUDGET_KEY:
            parse_amount(text)
        return ParsedAnswer(None, _free_answer(question, text))
    raise UsageError(f"{question.name}: {text[:60]!r} is not a choice; {_allowed(question)}")


def _value_of(question: Question, number: int) -> str:
    """Return the value of a choice by its number, from 1; raises UsageError."""
    values = question.values()
    if number > len(values):
        raise UsageError(f"{question.name} has no such choice; use its buttons")
    return values[number - 1]


def _mistyped(question: Question, text: str) -> str | None:
    """Return what is wrong with a text that is rather a mistyped choice; None for another text."""
    is_either = (
        bool(question.choices)
        and question.freeform_allowed
        and question.answer_kind is AnswerKind.TEXT
        and question.key != BUDGET_KEY
    )
    if not is_either:
        return None
    names = (*question.values(), *question.labels())
    if _NUMBER.fullmatch(text):
        if any(_NUMBER.fullmatch(name) for name in names):
            return None
        return f"there is no choice {text}; choose: {question.numbered_choices}"
    if _chosen(question, text) is not None:
        return None
    near = near_choices(question, text)
    return f"{text!r} is not a choice; did you mean {' or '.join(near)}?" if near else None


def near_choices(question: Question, text: str) -> Sequence[str]:
    """Return the labels of the choices that a text nearly names."""
    bare = text.rstrip(_ENDINGS)
    return [
        label
        for value, label in zip(question.values(), question.labels(), strict=True)
        if is_nearly(bare, value) or is_nearly(bare, label)
    ]


def _free_answer(question: Question, text: str) -> str:
    try:
        return normalize_answer(question.answer_kind, text)
    except ValueError:
        noun, _ = NOUNS[question.answer_kind]
        raise UsageError(
            f"{question.name}: {text[:60]!r} is not {noun}; {_allowed(question)}"
        ) from None


def parse_amount(text: str) -> float:
    """Return the amount of an answer such as `12.50` or `$5`; raises UsageError."""
    match = _AMOUNT.fullmatch(text.strip())
    amount = float(match[1].replace(",", "")) if match else 0.0
    if not 0 < amount <= MAX_AMOUNT:
        raise UsageError(f"{text[:60]!r} is not an amount; answer an amount such as 12.50, or stop")
    return amount


def _chosen(question: Question, text: str) -> str | None:
    """Return the value of the choice that a text names; None without or with several matches."""
    choice_values = question.values()
    if text in choice_values:
        return text
    numbers = [str(number) for number in range(1, len(choice_values) + 1)]
    wanted = matching_key(text)
    for key, ignored in (
        (wanted, ""),
        (wanted.rstrip(_ENDINGS), _ENDINGS),
        (wanted.strip(_WRAPPING + _ENDINGS), _ENDINGS),
    ):
        for names in (choice_values, question.labels(), numbers):
            matches = [
                value
                for value, name in zip(choice_values, names, strict=True)
                if key and matching_key(name).rstrip(ignored) == key
            ]
            if len(matches) == 1:
                return matches[0]
    return None


def interpret(question: Question, response: Response) -> tuple[dict[str, Any], Resolution | None]:
    """Return the stored payload of a response, and the resolution of an input question.

    Raises UsageError for an open question whose choices and amounts do not have the answer, and for
    any without the number of a choice.
    """
    if response.decision is not None:
        payload: dict[str, Any] = {"decision": str(response.decision)}
        if response.reason:
            payload["reason"] = response.reason
        if response.comments:
            payload["comments"] = [comment.as_json() for comment in response.comments]
        return payload, None
    try:
        read = parse_answer(question, response)
    except UsageError:
        if question.status is QuestionStatus.OPEN or response.choice is not None:
            raise
        return {"text": clean(response.text or "")}, None
    payload = {"value": read.value} if read.value is not None else {"text": clean(read.text)}
    return payload, Resolution("answered", "person", value=read.value, text=payload.get("text"))


def check_kind(question: Question, response: Response) -> None:
    """Raise UsageError unless the response is of the question's kind.

    Only an explicit decision decides an approval, never free text, and changes can be requested
    only where somebody makes them.
    """
    if question.kind is QuestionKind.APPROVAL and response.decision is None:
        raise UsageError(
            "is an approval", subject=question.name, hint=CommandHint("approve|deny", lead="use")
        )
    if question.kind is QuestionKind.INPUT and response.decision is not None:
        raise UsageError(
            "is a question, not an approval",
            subject=question.name,
            hint=CommandHint("answer", lead="use"),
        )
    if response.decision is Decision.REQUEST_CHANGES and not question.takes_changes:
        raise no_changes(question)


def no_changes(question: Question) -> UsageError:
    """Return the refusal of a request for changes that nobody would make."""
    return UsageError(
        "takes no requests for changes: no agent would make them",
        subject=question.name,
        hint=CommandHint("approve|deny", lead="use"),
    )


def tally(
    question: Question, decision: Decision, voter: str, votes: Sequence[str]
) -> Resolution | None:
    """Return the resolution of an approval by a decision after these votes; None: it stays open."""
    if decision is not Decision.APPROVE:
        return Resolution(decision.outcome, "person", by=(voter,))
    if len(votes) + 1 >= question.quorum:
        return Resolution(decision.outcome, "person", by=(*votes, voter))
    return None


def fails_job(question: Question, resolution: Resolution) -> bool:
    """Return whether this resolution fails the job."""
    return resolution.outcome == "denied" and question.on_deny is OnDeny.FAIL


def _allowed(question: Question) -> str:
    if not question.choices:
        return f"enter {question.free_answer}"
    free = f"; or enter {question.free_answer}" if question.freeform_allowed else ""
    return f"choose: {question.numbered_choices}{free}"


# Reasons for which an answer is refused, as spans.


def permission_reason(error: NotPermitted) -> Spans:
    """Return the message of an error with a reference to the refused account."""
    if not error.actor:
        return (str(error),)
    hint = "" if error.hint is None else f"; {error.hint}"
    return ActorRef(error.actor, error.subject), f" {error.reason}{hint}"


def repeated_vote_reason(voter: str) -> Spans:
    """Return the reason for a second vote of the same person."""
    return ActorRef(voter), " has already approved; each person votes once"


def closed_reason(locked: LockedQuestion) -> Spans:
    """Return the reason for an answer to a question that is closed or due to expire."""
    question = locked.question
    if locked.asked_again is not None:
        again = question_name(question.job, locked.asked_again)
        return (f"{question.name} was replaced: it is asked again as {again}",)
    if question.status is QuestionStatus.OPEN:
        return (f"{question.name} expired before this answer arrived",)
    resolution = question.resolution or {}
    outcome = resolution.get("outcome", question.status)
    by = actor_spans(resolution.get("by", ()))
    verb = "has" if outcome == QuestionStatus.EXPIRED else "was"
    text = f"{question.name} {verb} already {outcome}"
    if question.has_changes_requested:
        text = f"{question.name}: changes were already requested"
    return (f"{text} by ", *by) if by else (text,)


def stored_reason(locked: LockedQuestion, answer: Answer) -> Spans | None:
    """Return the reason why an answer was refused, None if it was accepted."""
    reason = closed_reason(locked) if answer.payload.get("late") else ()
    reason = reason or decode_spans(answer.payload.get("refusal"))
    if reason and spans_text(reason) == answer.reason:
        return reason
    return None if answer.reason is None else (answer.reason,)
