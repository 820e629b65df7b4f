"""Resolution of a text: for which question or job of its place it is, if for any. Pure.

| Text | Rule |
|---|---|
| repeated | is for the question that it has answered |
| edited or deleted after it was accepted | changes nothing, and is recorded |
| edited before | counts as it is now; no edit of a command or message counts |
| late | is for no question that was asked after it; a closed question gets it for the reason |
| ambiguous | is for none; its author is asked |
| with an unknown name or command | is for none; its author gets a reply |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from draftsman.questions.answer import is_number
from draftsman.questions.question import Question, QuestionKind, QuestionStatus
from draftsman_bots.conversation.answers import (
    VERBS,
    ApprovalDecision,
    accepting_questions,
    is_decision_word,
    names_choice,
    nearly_names_choice,
)
from draftsman_bots.conversation.commands import About
from draftsman_bots.conversation.parser import ATTENTION, ParsedText

if TYPE_CHECKING:
    from draftsman.questions.answer import Answer


class Change(StrEnum):
    """What happened to a text."""

    POSTED = "posted"
    EDITED = "edited"
    DELETED = "deleted"


class Talk(StrEnum):
    """Texts of a place that answer without a command, a mention, a number or a choice."""

    NONE = "none"
    """None: other programs and people of the forge write there."""
    PERMITTED = "permitted"
    """A free text of a person who may answer: people also discuss on a card."""
    ALL = "all"
    """Any text: the thread is that of the job."""


@dataclass(frozen=True, slots=True)
class WrittenText:
    """A text, its key, which all its edits have, and its time by the clock of its channel.

    `version` is the key of an edit.
    """

    parsed: ParsedText | None
    key: str
    written: datetime | None = None
    change: Change = Change.POSTED
    version: str = ""
    is_file: bool = False


@dataclass(frozen=True, slots=True)
class PlacedQuestion:
    """A question of a place, and when it appeared there by the clock of the channel, if known."""

    question: Question
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class PlacedJob:
    """A job of a place."""

    number: int
    finished: bool = False
    is_agent: bool = True


@dataclass(frozen=True, slots=True)
class Place:
    """Where a text was written: the questions and jobs there, and the answers to them.

    `permitted` has the names of the questions that the author may answer, if `talk` needs them.
    """

    talk: Talk
    questions: Sequence[PlacedQuestion] = ()
    jobs: Sequence[PlacedJob] = ()
    answers: Sequence[Answer] = ()
    voter: str = ""
    permitted: frozenset[str] = frozenset()


class Outcome(StrEnum):
    """Outcomes of a resolution."""

    ANSWER = "answer"
    """It answers the first question, or is too late for it."""
    AMBIGUOUS = "ambiguous"
    """It may be for any of the questions."""
    NO_TEXT = "no_text"
    """A file without text, which answers nothing."""
    WRONG_KIND = "wrong_kind"
    """The first question needs the other kind of answer."""
    UNKNOWN_COMMAND = "unknown_command"
    NOT_HERE = "not_here"
    """It names a question that was not asked here, or there is none."""
    COMMAND = "command"
    """A command, on the first question or on the job if it is about one."""
    WHICH_JOB = "which_job"
    """A command for one of several jobs; without any, no job is here."""
    EDITED_COMMAND = "edited_command"
    ANSWER_EDITED = "answer_edited"
    """An accepted answer was edited."""
    ANSWER_DELETED = "answer_deleted"
    MESSAGE = "message"
    """A text for the agent or a request: no question waits for it."""
    REPEATED = "repeated"
    """This edit was the accepted answer."""
    TALK = "talk"


@dataclass(frozen=True, slots=True)
class Resolved:
    """The outcome, its questions or jobs, and what to submit: the decision, else the text."""

    outcome: Outcome
    questions: Sequence[Question] = ()
    jobs: Sequence[int] = ()
    decision: ApprovalDecision | None = None
    text: str = ""
    answer: Answer | None = None
    """The accepted answer that was changed."""
    is_certain: bool = False
    """Whether it is no talk: such a text always gets a reply."""


def resolve(text: WrittenText, place: Place) -> Resolved:
    """Return for which question or job a text is."""
    recorded = [answer for answer in place.answers if _of_text(answer, text.key)]
    if text.change is not Change.POSTED:
        accepted = next((answer for answer in recorded if answer.accepted), None)
        if accepted is not None:
            return _changed_answer(text, accepted)
    parsed = text.parsed
    if parsed is None or text.change is Change.DELETED:
        return Resolved(Outcome.TALK)
    if text.change is Change.POSTED and recorded:
        if any(answer.accepted and answer.source_event_id != text.key for answer in recorded):
            return Resolved(Outcome.REPEATED)
        named = {(answer.job, answer.question) for answer in recorded}
        placed = (item.question for item in place.questions)
        answered = [item for item in placed if (item.job, item.ordinal) in named]
        if answered:
            return _answer(parsed, answered[:1])
    questions = _asked_before(text, place)
    command = parsed.command
    if command is not None and not _is_text_here(parsed, questions):
        if command.name in ATTENTION:
            return _attention(text, parsed, questions, place)
        if command.about is not About.QUESTION:
            return _command(text, parsed, command.about, questions, place)
    return _resolve_answer(text, parsed, questions, place)


def _changed_answer(text: WrittenText, accepted: Answer) -> Resolved:
    if text.version and accepted.source_event_id == text.version:
        return Resolved(Outcome.REPEATED)
    edited = text.change is Change.EDITED
    outcome = Outcome.ANSWER_EDITED if edited else Outcome.ANSWER_DELETED
    return Resolved(outcome, answer=accepted)


def _of_text(answer: Answer, key: str) -> bool:
    return answer.source_event_id == key or answer.source_event_id.startswith(f"{key}:")


def _asked_before(text: WrittenText, place: Place) -> list[Question]:
    """Return the questions that the author may have seen, newest first.

    Where only the clock of the database is known, it counts if a question was closed since the
    text: the text may be its answer.
    """
    is_late = any(closed_since(item.question, text.written) for item in place.questions)
    questions: list[Question] = []
    for item in place.questions:
        since = item.since or (item.question.asked_at if is_late else None)
        if text.written is None or since is None or since <= text.written:
            questions.append(item.question)
    return sorted(questions, key=lambda item: (item.asked_at, item.job, item.ordinal), reverse=True)


def closed_since(question: Question, written: datetime | None) -> bool:
    """Return whether a question that is closed now was open when the text was written."""
    if question.status is QuestionStatus.OPEN or written is None:
        return False
    ended = question.answered_at
    return question.asked_at <= written and (ended is None or ended >= written)


def _is_text_here(parsed: ParsedText, questions: Sequence[Question]) -> bool:
    """Return whether a word that may be a command is none: a question accepts it as an answer."""
    return parsed.doubtful and bool(parsed.problem or _accepting(parsed, _open(questions)))


def _attention(
    text: WrittenText, parsed: ParsedText, questions: Sequence[Question], place: Place
) -> Resolved:
    if text.change is Change.EDITED:
        jobs = [job.number for job in place.jobs[:1]]
        return Resolved(Outcome.EDITED_COMMAND, questions[:1], jobs)
    chosen = _named(parsed, _open(questions))
    if len(chosen) == 1:
        return Resolved(Outcome.COMMAND, chosen, text=parsed.text)
    if chosen or questions:
        return Resolved(Outcome.AMBIGUOUS, chosen or questions)
    return _nothing_here(parsed, place)


def _command(
    text: WrittenText,
    parsed: ParsedText,
    about: About,
    questions: Sequence[Question],
    place: Place,
) -> Resolved:
    """Resolve a command that is about no question; a request has the questions that are open."""
    if about is not About.JOB:
        return Resolved(Outcome.COMMAND, _open(questions))
    if parsed.ref:
        jobs = [parsed.job] if parsed.job is not None else []
    else:
        placed = [job for job in place.jobs if job.is_agent or parsed.verb != "tell"]
        live = [job.number for job in placed if not job.finished]
        jobs = live or [job.number for job in placed[:1]]
    if text.change is Change.EDITED:
        return Resolved(Outcome.EDITED_COMMAND, jobs=jobs[:1])
    if len(jobs) == 1 or parsed.ref:
        return Resolved(Outcome.COMMAND, jobs=jobs, text=parsed.text)
    return Resolved(Outcome.WHICH_JOB, jobs=jobs)


def _resolve_answer(
    text: WrittenText, parsed: ParsedText, questions: Sequence[Question], place: Place
) -> Resolved:
    if parsed.ref and not _named(parsed, [item.question for item in place.questions]):
        return _nothing_here(parsed, place)
    questions = _named(parsed, questions)
    open_questions = _open(questions)
    if not open_questions:
        return _resolve_closed(text, parsed, questions, place)
    accepting = _accepting(parsed, open_questions)
    decision = parsed.decision
    is_decision = parsed.verb in VERBS and not parsed.doubtful
    if is_decision and decision is None:
        return Resolved(Outcome.WRONG_KIND, open_questions, is_certain=True)
    is_approval = any(item.kind is QuestionKind.APPROVAL for item in questions)
    if accepting and not (is_decision or is_approval):
        decision = None
    candidates = _of_kind(open_questions, decision)
    if not candidates:
        is_certain = _is_decisive(parsed) or is_decision_word(parsed.answer_line)
        is_meant = is_certain or _is_meant(parsed, place, open_questions)
        outcome = Outcome.WRONG_KIND if is_meant else Outcome.TALK
        return Resolved(outcome, open_questions, decision=decision, is_certain=is_certain)
    if decision is None:
        candidates = accepting or _nearly_named(parsed, candidates) or candidates
    if parsed.unknown and not _names_any(parsed, candidates):
        is_meant = parsed.addressed or place.talk is Talk.ALL
        is_meant = is_meant or (
            place.talk is Talk.PERMITTED and candidates[0].name in place.permitted
        )
        return Resolved(Outcome.UNKNOWN_COMMAND if is_meant else Outcome.TALK, candidates)
    if not _is_meant(parsed, place, candidates):
        return Resolved(Outcome.TALK)
    if text.is_file or not (parsed.answer or decision):
        return Resolved(Outcome.NO_TEXT, candidates)
    if len(candidates) > 1:
        return Resolved(Outcome.AMBIGUOUS, candidates, decision=decision, text=parsed.answer)
    return _answer(parsed, candidates)


def _resolve_closed(
    text: WrittenText, parsed: ParsedText, questions: Sequence[Question], place: Place
) -> Resolved:
    """Resolve a text among closed questions: an answer that is late, a message, or talk."""
    closed = _of_kind(questions, parsed.decision)
    is_message = place.talk is Talk.ALL or parsed.explicit
    is_command = bool(parsed.verb) and not parsed.doubtful
    is_late = is_message and any(closed_since(item, text.written) for item in questions)
    is_answer = (
        is_command
        or is_late
        or parsed.decision is not None
        or _names_any(parsed, closed)
        or (bool(closed) and is_number(parsed.answer))
    )
    if not is_answer:
        has_text = parsed.answer or text.is_file
        return Resolved(Outcome.MESSAGE if is_message and has_text else Outcome.TALK)
    if not closed:
        return _nothing_here(parsed, place) if is_command else Resolved(Outcome.TALK)
    told = not parsed.explicit and _is_settled(text, closed[0], place)
    if told or not (parsed.answer or parsed.decision):
        return Resolved(Outcome.TALK)
    return _answer(parsed, closed[:1])


def _is_settled(text: WrittenText, question: Question, place: Place) -> bool:
    """Return whether another text of the author to this question was refused: told once."""
    return any(
        (answer.job, answer.question) == (question.job, question.ordinal)
        and answer.voter == place.voter
        and not answer.accepted
        and not _of_text(answer, text.key)
        for answer in place.answers
    )


def _answer(parsed: ParsedText, questions: Sequence[Question]) -> Resolved:
    """Return an answer to the first question: a decision, else the line of a choice or the text."""
    first = questions[0]
    decision = parsed.decision if first.kind is QuestionKind.APPROVAL else None
    text = parsed.answer_line if names_choice(first, parsed.answer_line) else parsed.answer
    return Resolved(Outcome.ANSWER, questions, decision=decision, text=text)


def _nothing_here(parsed: ParsedText, place: Place) -> Resolved:
    """Return that it is for nothing here; other programs have such commands, too."""
    replies = place.jobs or parsed.addressed
    return Resolved(Outcome.NOT_HERE if replies else Outcome.TALK)


def _is_meant(parsed: ParsedText, place: Place, questions: Sequence[Question]) -> bool:
    """Return whether a text is an answer to one of the questions, not talk among people."""
    if _is_decisive(parsed) or place.talk is Talk.ALL:
        return True
    if _names_any(parsed, questions) or is_number(parsed.answer):
        return True
    if _nearly_named(parsed, questions):
        return True
    return place.talk is Talk.PERMITTED and any(
        item.freeform_allowed and item.name in place.permitted for item in questions
    )


def _is_decisive(parsed: ParsedText) -> bool:
    """Return whether a text is for the bot, or is a decision."""
    return parsed.explicit or parsed.decision is not None


def _names_any(parsed: ParsedText, questions: Sequence[Question]) -> bool:
    return any(names_choice(item, parsed.answer_line) for item in questions)


def _nearly_named(parsed: ParsedText, questions: Sequence[Question]) -> list[Question]:
    return [item for item in questions if nearly_names_choice(item, parsed.answer)]


def _accepting(parsed: ParsedText, questions: Sequence[Question]) -> list[Question]:
    """Return the questions that accept the text, or whose choice its first line names."""
    by_text = accepting_questions(questions, parsed.answer)
    return [item for item in questions if item in by_text or names_choice(item, parsed.answer_line)]


def _named(parsed: ParsedText, questions: Sequence[Question]) -> list[Question]:
    return [
        item
        for item in questions
        if parsed.job in (None, item.job) and parsed.question in (None, item.ordinal)
    ]


def _open(questions: Sequence[Question]) -> list[Question]:
    return [item for item in questions if item.status is QuestionStatus.OPEN]


def _of_kind(questions: Sequence[Question], decision: ApprovalDecision | None) -> list[Question]:
    kind = QuestionKind.INPUT if decision is None else QuestionKind.APPROVAL
    return [item for item in questions if item.kind is kind]
