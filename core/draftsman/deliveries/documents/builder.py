"""Documents of all kinds of messages. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from html import escape
from typing import Any, Final

from draftsman.agent_runs.changes.diff import is_diff
from draftsman.agent_runs.changes.shown_diff import diffstat, shown_beginning
from draftsman.deliveries.action_text import action_text
from draftsman.deliveries.delivery import DeliveryKind, Message, Subject
from draftsman.deliveries.documents.document import (
    KEPT,
    LENGTH,
    LINES,
    Action,
    Addressees,
    Choice,
    Choices,
    Code,
    Command,
    Control,
    Controls,
    Document,
    Facts,
    Footer,
    Headline,
    InFile,
    Items,
    Link,
    Note,
    Paragraph,
    Part,
    Quote,
    RichPart,
    Step,
    Text,
    Time,
    control,
    is_cut,
)
from draftsman.deliveries.documents.shown_results import shown_result
from draftsman.deliveries.message_text import (
    job_outcome_spans,
    notice_spans,
    pause_text,
    progress_text,
    same_question_text,
    shown_error,
    state_text,
)
from draftsman.deliveries.question_text import (
    closed_spans,
    missing_diff,
    question_notes,
    title_before,
)
from draftsman.deliveries.result_text import change_summary, counts_summary, pr_url, raw_data
from draftsman.formats.amounts import counted
from draftsman.formats.times import span
from draftsman.formats.truncation import utf16_length
from draftsman.jobs.job import AGENT_TYPE, TERMINAL, Status
from draftsman.jobs.status_display import display_of
from draftsman.people.spans import ActorRef
from draftsman.questions.answer_kind import wanted_answer
from draftsman.questions.question import Question, QuestionKind
from draftsman.text import capitalized

DIFF_ROOM: Final = LENGTH - 100
"""Room for the lines of a diff, escaped, so that no medium cuts them once more."""
QUESTION_LENGTH: Final = 6000
"""Maximum characters of the text of a question."""
RETRYABLE: Final = TERMINAL - {Status.COMPLETED}
"""Final statuses of a job that can be retried."""
NO_APPROVER: Final[Text] = (
    (
        "This approval has no approver: the named approvers are not in the configuration, or"
        " requested the job themselves. An operator can give a person under "
    ),
    Command("[people]"),
    " the role ",
    Command("approver"),
    " and restart draftsman, or cancel the job.",
)


def build_document(message: Message) -> Document:
    """Return the document of a message."""
    return tuple(_parts(message))


def full_at(message: Message) -> Command:
    """Return the command that shows what a message is about, whole."""
    if message.kind is DeliveryKind.DIGEST:
        return Command("draftsman questions")
    return Command(f"draftsman show {message.subject.name}")


def _parts(message: Message) -> Iterator[Part | RichPart]:
    question = message.question
    match message.kind:
        case DeliveryKind.STATUS:
            yield from _status(message)
        case DeliveryKind.QUESTION | DeliveryKind.REMINDER if question is not None:
            yield from _question(message, question)
        case DeliveryKind.QUESTION_CLOSED if question is not None:
            yield from _closed(message, question)
        case DeliveryKind.RESULT:
            yield from _result(message)
        case DeliveryKind.NOTICE:
            yield from _notice(message)
        case DeliveryKind.DIGEST:
            yield from _digest(message)
        case DeliveryKind.FILE:
            name = (message.payload or {}).get("name")
            yield Paragraph((f"{message.subject.name}: file {name}",), LENGTH, full_at(message))
        case _:  # its question is gone
            yield Paragraph((f"{message.subject.name}: {message.kind}",), LENGTH)


def _status(message: Message) -> Iterator[Part]:
    """Yield the card of a job, which is edited with each status and with progress."""
    subject = message.subject
    yield _headline(subject, _says(subject))
    yield _facts(subject)
    for line in progress_text(message).splitlines():
        yield Note((line,), full_at(message))
    if error := shown_error(subject):
        yield Code(error, LENGTH // 4, full=full_at(message))
    if items := job_controls(subject.name, subject.status, failure_open=subject.failure_open):
        yield Controls(items)


def job_controls(name: str, status: Status, *, failure_open: bool) -> tuple[Control, ...]:
    """Return the controls of a job, in their order on each surface."""
    if status in RETRYABLE:
        dismiss = (control(Action.DISMISS),) if failure_open else ()
        return (control(Action.RETRY), *dismiss)
    if status in TERMINAL:
        return ()
    return (control(Action.CANCEL, f"Cancel {name}? {KEPT}"),)


def _question(message: Message, question: Question) -> Iterator[Part]:
    is_approval = question.kind is QuestionKind.APPROVAL
    show = full_at(message)
    if message.kind is DeliveryKind.REMINDER:
        text = (message.payload or {}).get("text")
        yield Paragraph(
            (str(text or f"{question.name} is still waiting for an answer"),), LENGTH, show
        )
    title = title_before(question, message.subject.title)
    verb = "asks for approval" if is_approval else "asks"
    yield Headline(display_of(Status.WAITING_FOR_INPUT), question.name, title, verb)
    yield Quote(question.text, QUESTION_LENGTH, show)
    if (snippet := question.context_snippet or "").strip():
        yield from _context(snippet, show)
    if action := question.approved_action:
        yield Note(("If approved:",))
        yield Code(action_text(action), LENGTH // 3, full=show)
    if message.requested is not None:
        heading, text = message.requested
        yield Note((f"{capitalized(heading)}:",))
        yield Quote(text, QUESTION_LENGTH, show)
    if message.changes:
        yield Note((f"{message.changes}: ", Command(f"draftsman diff {question.name}")))
    if question.choices:
        yield Choices(question_choices(question), show)
    if message.mentions:
        yield Addressees(message.mentions)
    elif is_approval:
        yield Paragraph(NO_APPROVER, LENGTH)
    if (delegation := message.delegation) is not None:
        yield Note((f"{delegation.text}, until ", Time(delegation.until)))
    yield Footer(tuple(_conditions(question)))
    yield from question_controls(question)


def _context(snippet: str, show: Command) -> Iterator[Part]:
    """Yield the beginning of a question's context, after the statistics of a diff."""
    if is_diff(snippet):
        yield Code(diffstat(snippet), LENGTH // 2, folds=True)
        shown = shown_beginning(snippet, LINES, DIFF_ROOM, _escaped_length)
        yield Code(shown, LENGTH, language="diff", folds=True, full=show)
    else:
        lines = "\n".join(snippet.splitlines()[:LINES])
        yield Code(lines, LENGTH, folds=True, full=show)
    if len(snippet) > LENGTH or len(snippet.splitlines()) > LINES:
        yield InFile("Truncated. The full text")


def _escaped_length(text: str) -> int:
    """Return the length of a text in the medium whose escapes are longest."""
    return utf16_length(escape(text)) + text.count("@") + text.count("`")


def _conditions(question: Question) -> Iterator[Text]:
    """Yield what holds for the answer, and how to give it."""
    yield from ((note,) for note in question_notes(question))
    if missing := missing_diff(question):
        yield (missing,)
    if question.kind is QuestionKind.APPROVAL and question.quorum > 1:
        yield (f"{question.quorum} approvals are needed",)
    if question.escalated_at is not None and question.escalate_to:
        yield (f"no answer in time: also sent to {question.escalate_to}",)
    if question.expires_at is not None:
        yield "expires ", Time(question.expires_at, "at")
    yield (answer_step(question),)


def answer_step(question: Question) -> Step:
    """Return how to answer a question."""
    is_approval = question.kind is QuestionKind.APPROVAL
    return Step(
        Action.APPROVE if is_approval else Action.ANSWER,
        question.name,
        choices=bool(question.choices),
        freeform=question.freeform_allowed,
        wanted=wanted_answer(question.answer_kind),
        changes=question.takes_changes,
    )


def question_choices(question: Question) -> tuple[Choice, ...]:
    """Return the choices of a question, in order."""
    return tuple(
        Choice(
            label=str(choice["label"]),
            description=str(choice.get("description") or ""),
            emoji=str(choice.get("emoji") or ""),
        )
        for choice in question.choices
    )


def question_controls(question: Question) -> Iterator[Controls]:
    """Yield the controls of an open question, in groups."""
    if question.kind is QuestionKind.APPROVAL:
        changes = (control(Action.REQUEST_CHANGES),) if question.takes_changes else ()
        yield Controls((control(Action.APPROVE), *changes, control(Action.DENY)))
    else:
        controls = []
        if question.choices:
            controls.append(control(Action.CHOOSE))
        if question.freeform_allowed:
            controls.append(control(Action.ANSWER))
        if controls:
            yield Controls(tuple(controls))
    yield Controls(
        (
            control(Action.ACKNOWLEDGE),
            control(Action.SNOOZE),
            control(Action.DELEGATE),
        )
    )


def _closed(message: Message, question: Question) -> Iterator[Part]:
    """Yield the resolution of a question, without controls."""
    show = full_at(message)
    yield Paragraph(closed_spans(question), LENGTH, show)
    if note := _closing_note(message.subject, question):
        yield Note(note, show)
    if title := title_before(question, message.subject.title):
        yield Note((f"{title} asked:",), show)
    yield Quote(question.text, QUESTION_LENGTH, show)


def _closing_note(subject: Subject, question: Question) -> Text:
    """Return when a question closed, and what follows a denial or an expiry."""
    when: Text = () if question.closed_at is None else (Time(question.closed_at, "on"),)
    if question.outcome not in ("denied", "expired"):
        return when
    separator = (" · ",) if when else ()
    if subject.status in RETRYABLE:
        return *when, *separator, "to retry: ", Command(f"draftsman retry {subject.name}")
    if subject.status in TERMINAL:
        return when
    return *when, *separator, "the job continues"


def _result(message: Message) -> Iterator[Part | RichPart]:
    subject = message.subject
    result = subject.result or {}
    says = _says(subject) if subject.status is Status.COMPLETED else ()
    yield _headline(subject, says)
    texts = [
        *_outcome(subject),
        *_result_facts(result),
        *shown_result(result, subject.name, full_at(message)),
    ]
    has_file = any(map(is_cut, texts))
    full = None if has_file else full_at(message)
    yield from (replace(part, full=full) if isinstance(part, Paragraph) else part for part in texts)
    if subject.group_stop:
        yield Note((subject.group_stop,), full_at(message))
    yield _facts(subject, outcome=False)
    if has_file:
        yield InFile("Truncated. The full text")
    elif raw_data(result):
        yield InFile("The data of the result")
    controls = [control(Action.RETRY)] if subject.status in RETRYABLE else []
    if subject.type == AGENT_TYPE and subject.status in TERMINAL:
        controls.append(control(Action.REVISE))
    if controls:
        yield Controls(tuple(controls))


def _outcome(subject: Subject) -> Iterator[Part]:
    """Yield why a job did not complete, and how to retry it."""
    if subject.status is Status.COMPLETED:
        return
    yield Paragraph(job_outcome_spans(subject, again=""), LENGTH // 2)
    if subject.status is not Status.CANCELED:
        yield Note(("to retry: ", Step(Action.RETRY, f"draftsman retry {subject.name}")))


def _result_facts(result: dict[str, Any]) -> Iterator[Part]:
    """Yield the summary of a result, its pull request and its changes."""
    summary = result.get("summary")
    if isinstance(summary, str) and summary.strip():
        yield Paragraph((summary,), LENGTH // 2)
    if url := pr_url(result):
        yield Paragraph((Link(url),), LENGTH)
    if lines := [text for text in (change_summary(result), counts_summary(result)) if text]:
        yield Paragraph(("\n".join(lines),), LENGTH // 4)


def _notice(message: Message) -> Iterator[Part]:
    payload = message.payload or {}
    prefix, *spans = notice_spans(message)
    notice = Paragraph((prefix, *spans), LENGTH)
    has_file = is_cut(notice) and "to" not in payload
    yield replace(notice, full=None if has_file else full_at(message))
    if has_file:
        yield InFile("Truncated. The full text")
    if isinstance(rule := payload.get("rule"), int) and rule > 0:
        yield Controls((control(Action.RATIFY), control(Action.DECLINE)))


def _digest(message: Message) -> Iterator[Part]:
    payload = message.payload or {}
    items = tuple(map(_digest_item, payload.get("questions") or ()))
    total = int(payload.get("count") or len(items))
    yield Paragraph((f"Your digest: {counted(total, 'question')} waiting for an answer",), LENGTH)
    yield Items(items, total, full_at(message))
    if message.mentions:
        yield Addressees(message.mentions)


def _digest_item(question: Mapping[str, Any]) -> Text:
    jobs = f" ({question['jobs']} jobs)" if question.get("jobs", 1) > 1 else ""
    words = f"{question['name']}{jobs}: {question['text']} · {question['title']}"
    if not (expires_at := question.get("expires_at")):
        return (words,)
    return words, ", expires ", Time(datetime.fromisoformat(expires_at), "at")


def _headline(subject: Subject, says: Text) -> Headline:
    mark = display_of(subject.status, denied=subject.denied)
    return Headline(mark, subject.name, subject.title, says=says)


def _says(subject: Subject) -> Text:
    """Return the status as the end of a sentence about the job."""
    predicate = display_of(subject.status, denied=subject.denied).predicate
    if subject.status is Status.RETRYING and subject.next_retry_at is not None:
        return f"{predicate} ", Time(subject.next_retry_at, "at")
    return (predicate + same_question_text(subject),)


def _facts(subject: Subject, *, outcome: bool = True) -> Facts:
    """Return facts of a job; a result has shown the `outcome` of a denial or cancel before."""
    state: Text = () if subject.denied else (state_text(subject),)
    if subject.status is Status.RETRYING and subject.next_retry_at is not None:
        state = (*state, " ", Time(subject.next_retry_at, "at"))
    return Facts(tuple(_details(subject, outcome=outcome)), state)


def _details(subject: Subject, *, outcome: bool) -> Iterator[Text]:
    if pause := pause_text(subject):
        yield (pause,)
    if subject.dismissed:
        yield (f"dismissed {' '.join(subject.dismissed.split())}",)
    if outcome and (subject.status is Status.CANCELED or subject.denied):
        yield job_outcome_spans(subject, again="")
    for label, value in (
        ("", subject.repo),
        ("by ", subject.request and subject.request.agent),
        ("group ", subject.group),
        ("", subject.usage),
        ("", duration_text(subject)),
    ):
        if value:
            yield (label + value,)
    if subject.invoker:
        yield "for ", ActorRef(subject.invoker)
    if subject.url:
        yield (Link(subject.url),)
    if (time := subject.finished_at or subject.created_at) is not None:
        yield (Time(time),)


def duration_text(subject: Subject) -> str:
    """Return how long a finished job took from its request: `took 12 min`; else ""."""
    if subject.finished_at is None or subject.created_at is None:
        return ""
    return f"took {span((subject.finished_at - subject.created_at).total_seconds())}"
