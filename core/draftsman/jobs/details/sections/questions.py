"""The questions of a job: who may answer until when, the choices, and the answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Final

from draftsman.attention.attention import QuestionAttention, QuestionNotification
from draftsman.deliveries.action_text import action_text
from draftsman.deliveries.question_text import question_notes, resolution_spans, visible_context
from draftsman.formats.amounts import counted
from draftsman.ids import job_name
from draftsman.jobs.details.job_details import JobDetails
from draftsman.jobs.details.sections.section import Entry, Line, LineSpan, Reader, faint, flat, name
from draftsman.jobs.job_summary import HeldDecision
from draftsman.jobs.status_display import Meaning
from draftsman.people.policy import Policy
from draftsman.people.spans import spans_text
from draftsman.questions.answer import Answer
from draftsman.questions.question import (
    MEANINGS,
    Decision,
    OnExpire,
    OpenQuestion,
    Question,
    QuestionKind,
    QuestionStatus,
    replacement_of,
)
from draftsman.questions.review_comment import comments_of
from draftsman.questions.rights import responders_text

CONTEXT_LINES: Final = 12
"""Maximum number of lines of a context that are shown."""
CLOSED_CONTEXT_LINES: Final = 4
"""The same for a closed question."""
MAX_RESPONDERS: Final = 3
"""Responders that a medium shows without a request."""


def questions(details: JobDetails, reader: Reader) -> Iterator[Entry]:
    """Yield the questions, in order."""
    open_questions = {question.ordinal: question for question in details.open_questions}
    for question in details.questions:
        if (open_question := open_questions.get(question.ordinal)) is not None:
            yield Entry(question.name, tuple(_open(open_question, details, reader)))
        else:
            yield Entry(question.name, tuple(_closed(question, details, reader)))


def responders(details: JobDetails, policy: Policy, owner: str) -> dict[int, LineSpan]:
    """Return who may answer each open question, by ordinal; `owner` as in `responders_of`."""
    text_of = partial(responders_text, policy, invoker=details.job.invoker_id, owner=owner)
    found = {}
    for question in details.open_questions:
        text, short = text_of(question), text_of(question, most=MAX_RESPONDERS)
        found[question.ordinal] = LineSpan(text, short=short if short != text else "")
    return found


def _open(question: OpenQuestion, details: JobDetails, reader: Reader) -> Iterator[Line]:
    yield heading(question, details, reader)
    if asking := details.asking.get(question.ordinal):
        yield (LineSpan(asking, Meaning.WARNING),)
    yield from ((line,) for line in question.text.splitlines())
    yield from _details(question, CONTEXT_LINES, reader)
    yield from choice_lines(question)
    if question.freeform_allowed:
        text = question.free_answer
        yield (faint(f"or {text}" if question.choices else text),)
    yield from remark_lines(question, details, reader)


def _closed(question: Question, details: JobDetails, reader: Reader) -> Iterator[Line]:
    yield heading(question, details, reader)
    yield from ((line,) for line in question.text.splitlines())
    yield from choice_lines(question)
    yield from remark_lines(question, details, reader)
    yield from _details(question, CLOSED_CONTEXT_LINES, reader)


def heading(question: Question, details: JobDetails, reader: Reader) -> Line:
    """Return the name and kind of a question, and how it was closed, or how it waits."""
    if question.status is QuestionStatus.OPEN:
        known = reader.responders.get(question.ordinal, "no person")
        return open_heading(question, known, reader)
    meaning = MEANINGS[question.outcome]
    resolution = resolution_spans(question)
    if question.has_changes_requested:
        resolution = resolution[:-1]  # its text and comments are those of an answer below
    replaced: Line = ()
    if (replacement := replacement_of(question, details.questions)) is not None:
        replaced = (faint(" · asked again as "), name(replacement.name))
    answered: Line = ()
    if question.closed_at is not None:
        answered = (LineSpan(", ", meaning), reader.ago(question.closed_at, meaning))
    return (
        name(question.name),
        f"  {_kind(question)} ",
        LineSpan(flat(spans_text(resolution)), meaning),
        *answered,
        faint(" · asked "),
        reader.ago(question.asked_at, Meaning.NEUTRAL),
        *replaced,
    )


def open_heading(question: Question, responders: LineSpan | str, reader: Reader) -> Line:
    """Return the name, kind, responders, age and deadline of an open question."""
    return (
        LineSpan(question.name, Meaning.WAITING, is_name=True),
        f"  {_kind(question)} for ",
        responders,
        " · asked ",
        reader.ago(question.asked_at),
        " · ",
        *(pending(question, reader) or deadline(question, reader)),
    )


def _kind(question: Question) -> str:
    return "approval" if question.kind is QuestionKind.APPROVAL else "question"


def deadline(question: Question, reader: Reader) -> Line:
    """Return the deadline and the outcome without an answer."""
    if question.expires_at is None:
        return (LineSpan("no deadline", Meaning.WAITING),)
    fallback = {
        OnExpire.EXPIRE: "",
        OnExpire.DEFAULT: f", default: {question.label_of(question.default_value or '')!r}",
        OnExpire.CONTINUE: ", then continues without an answer",
        OnExpire.ESCALATE: (
            "" if question.escalated_at else f", then escalates to {question.escalate_to}"
        ),
    }
    return (
        LineSpan("expires ", Meaning.WAITING),
        reader.until(question.expires_at, Meaning.WAITING),
        LineSpan(fallback[question.on_expire], Meaning.WAITING),
    )


def pending(question: Question, reader: Reader) -> Line:
    """Return an answer or a decision that can still be undone; empty without one."""
    if not isinstance(question, OpenQuestion) or question.applies_at is None:
        return ()
    verb = "decided" if question.kind is QuestionKind.APPROVAL else "answered"
    held = HeldDecision(verb, question.decided_by or "", question.applies_at)
    return LineSpan(held.lead, Meaning.WAITING), reader.until(held.applies_at, Meaning.WAITING)


def _details(question: Question, most: int, reader: Reader) -> Iterator[Line]:
    if reader.types_commands:
        yield from detail_lines(question, most)
        return
    context = visible_context(question).strip("\n").splitlines()
    is_open = question.status is QuestionStatus.OPEN
    shown = context if is_open else context[:most]
    yield from ((faint(text),) for text in shown)
    if hidden := len(context) - len(shown):
        yield (faint(f"… {counted(hidden, 'more line')}: open {question.name}"),)
    yield from _action(question)


def detail_lines(question: Question, most: int = CONTEXT_LINES) -> Iterator[Line]:
    """Yield the first lines of the context, and the action to approve, for a terminal."""
    context = visible_context(question).strip("\n").splitlines()
    for text in context[:most]:
        yield (faint(f"| {text}"),)
    if len(context) > most:
        command = f"draftsman show {job_name(question.job)} --json"
        yield (faint(f"| … {len(context) - most} more lines: {command}"),)
    yield from _action(question)


def _action(question: Question) -> Iterator[Line]:
    if action := question.approved_action:
        yield (f"if approved: {flat(action_text(action))}",)


def choice_lines(question: Question) -> Iterator[Line]:
    """Yield the numbered choices with their descriptions."""
    labels = [flat(label) for label in question.labels()]
    width = max(map(len, labels), default=0)
    for number, (label, choice) in enumerate(zip(labels, question.choices, strict=True), 1):
        description = flat(choice.get("description") or "")
        yield name(f"{number:>3}  "), f"{label:<{width}}  ", faint(description)


def remark_lines(question: Question, details: JobDetails, reader: Reader) -> Iterator[Line]:
    """Yield whom a question reaches, and the answers of people."""
    yield from note_lines(question, reader)
    attention = details.attention.get((question.job, question.ordinal))
    yield from attention_lines(attention, reader)
    yield from _answers(question, details, reader)


def note_lines(question: Question, reader: Reader) -> Iterator[Line]:
    """Yield short facts of a question, and whom it reached because nobody answered in time."""
    yield from ((LineSpan(note, Meaning.WARNING),) for note in question_notes(question))
    if question.escalated_at:
        escalated = LineSpan(f"escalated to {question.escalate_to} ", Meaning.WAITING)
        yield escalated, reader.ago(question.escalated_at, Meaning.WAITING)


def _answers(question: Question, details: JobDetails, reader: Reader) -> Iterator[Line]:
    answers = [answer for answer in details.answers if answer.question == question.ordinal]
    if question.kind is QuestionKind.APPROVAL and question.quorum > 1:
        votes = sum(
            answer.accepted and answer.payload.get("decision") == "approve" for answer in answers
        )
        yield (f"{votes} of {question.quorum} approvals",)
    for answer in answers:
        yield from _answer(question, answer, reader)


_VERBS: Final[dict[str, str]] = {
    Decision.APPROVE: "approves",
    Decision.DENY: "denies",
    Decision.REQUEST_CHANGES: "requests changes",
}


def _answer(question: Question, answer: Answer, reader: Reader) -> Iterator[Line]:
    """Yield an answer, and a line for each comment on a file."""
    shown = answer.responder_display_name or answer.voter
    person = answer.voter.rpartition(":")[2]
    voter = shown if person.casefold() in shown.casefold() else f"{shown}, as {person}"
    value = answer.payload.get("decision") or question.answer_text(answer.payload)
    verb = _VERBS.get(str(value), f"answers {value}")
    reason = f": {said}" if (said := answer.payload.get("reason")) else ""
    comments = [flat(comment) for comment in comments_of(answer.payload)]
    who = f"{flat(f'{voter} ({answer.source})')} "
    text = flat(f"{verb}{reason}")
    when: Line = (faint(", "), reader.ago(answer.created_at, Meaning.NEUTRAL))
    if answer.accepted:
        yield LineSpan("→ ", Meaning.SUCCESS), who, LineSpan(text, Meaning.SUCCESS), *when
        yield from ((LineSpan(f"  {comment}", Meaning.SUCCESS),) for comment in comments)
        return
    rejection = flat(f"not accepted: {answer.reason or 'no reason given'}")
    yield (
        LineSpan("✗ ", Meaning.FAILURE),
        who,
        faint(text),
        *when,
        LineSpan(f"; {rejection}", Meaning.WARNING),
    )
    yield from ((faint(f"  {comment}"),) for comment in comments)


def attention_lines(attention: QuestionAttention | None, reader: Reader) -> Iterator[Line]:
    """Yield the delays and notifications of a question, and the next step of its ladder."""
    if attention is None:
        return
    if attention.acknowledged_by and attention.acknowledged_until:
        text = f"acknowledged by {attention.acknowledged_by} until "
        yield (
            LineSpan(text, Meaning.WAITING),
            reader.clock(attention.acknowledged_until, Meaning.WAITING),
        )
    if attention.delegated_to and attention.delegated_until:
        by = f"delegated by {attention.delegated_by} to {attention.delegated_to}"
        yield (
            LineSpan(f"{by}, others wait until ", Meaning.WAITING),
            reader.clock(attention.delegated_until, Meaning.WAITING),
        )
    for delay in attention.snoozed:
        yield (
            LineSpan(f"snoozed by {delay.person} until ", Meaning.WAITING),
            reader.clock(delay.expires_at, Meaning.WAITING),
        )
    yield from ((faint(text),) for text in _notifications(attention.notifications, reader))
    yield from _next_step(attention, reader)


def _notifications(notifications: Sequence[QuestionNotification], reader: Reader) -> Iterator[str]:
    """Yield a line about the recipients of each time at which people were notified."""
    of_time: dict[str, list[str]] = {}
    for item in notifications:
        if item.notified:
            moment = reader.clock(item.notified_at).text
            of_time.setdefault(moment, []).append(_recipient(item))
    yield from (f"notified {_unique(names)} at {moment}" for moment, names in of_time.items())
    if skipped := [_skipped(item, reader) for item in notifications if not item.notified]:
        yield f"not notified: {_unique(skipped)}"


def _next_step(attention: QuestionAttention, reader: Reader) -> Iterator[Line]:
    """Yield `next: ben, @oncall in 12 min, at 10:45`, if a step follows."""
    if attention.next_at is not None and attention.next_step:
        escalates = ", with the right to answer from then on," if attention.escalates else ""
        yield (
            faint(f"next: {', '.join(attention.next_step)}{escalates} "),
            reader.until(attention.next_at, Meaning.NEUTRAL),
            faint(", at "),
            reader.clock(attention.next_at, Meaning.NEUTRAL),
            faint(f" (ladder {attention.ladder})"),
        )


def _recipient(item: QuestionNotification) -> str:
    place = {"thread": " in the thread", "inbox": " in the inbox"}.get(item.outcome, "")
    undelivered = "not delivered" if item.delivery_status == "dead_letter" else "not sent yet"
    pending = "" if item.delivery_status in (None, "sent") else f" ({undelivered})"
    return f"{item.recipient}{place}{pending}"


def _skipped(item: QuestionNotification, reader: Reader) -> str:
    until = f" until {reader.clock(item.away_until).text}" if item.away_until else ""
    return f"{item.recipient} {item.skip_text}{until}"


def _unique(names: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(names))
