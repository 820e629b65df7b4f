"""Submission of answers, and the words of all replies to what people write."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from draftsman.deliveries.question_text import already_recorded
from draftsman.errors import DraftsmanError, NotFound, NotPermitted, Refused, UsageError
from draftsman.ids import job_name
from draftsman.questions.question import QuestionKind
from draftsman_bots.conversation import attention, job_controls
from draftsman_bots.conversation.answers import build_response, is_shown_by_question
from draftsman_bots.conversation.attention import AttentionReply
from draftsman_bots.conversation.commands import Surface, command_names
from draftsman_bots.conversation.job_controls import pause_note
from draftsman_bots.conversation.parser import ATTENTION, ParsedText
from draftsman_bots.conversation.places import agent_jobs
from draftsman_bots.conversation.resolution import (
    Change,
    Outcome,
    Place,
    Resolved,
    WrittenText,
)

if TYPE_CHECKING:
    from draftsman.people.actor import Actor
    from draftsman.people.spans import Spans
    from draftsman.questions.answer import Verdict
    from draftsman.questions.question import Question
    from draftsman.runtime import Runtime


@dataclass(frozen=True, slots=True)
class Wording:
    """How commands and decisions are written in a place: `/tell D-142 TEXT`, `approve`."""

    surface: Surface
    call: str = "/"
    """The beginning of a command: `/draftsman `."""
    decide: str = ""
    """The beginning of a decision: `@draftsman `."""
    quote: str = ""
    """Marks around a command."""

    def command(self, *words: str) -> str:
        """Return a command."""
        return f"{self.quote}{self.call}{' '.join(words)}{self.quote}"

    def decision(self, words: str) -> str:
        """Return a decision."""
        return f"{self.quote}{self.decide}{words}{self.quote}"


class ReplyKind(StrEnum):
    """Results of a text."""

    ANSWERED = "answered"
    RECORDED = "already_recorded"
    """Another answer of the person is recorded."""
    REFUSED = "rejected"
    REPLIED = "replied"
    """The author gets a reply that says what to write instead."""
    ATTENDED = "attended"
    SENT = "message_sent"
    CHANGED = "changed"
    """The job was paused, resumed or canceled."""


@dataclass(frozen=True, slots=True)
class TextReply:
    """The result of a text, and the reply to its author, which is empty if the place shows it."""

    kind: ReplyKind
    job: int | None
    text: Spans | AttentionReply = ()

    @property
    def spans(self) -> Spans:
        """The reply, with times in full."""
        return (self.text.text(),) if isinstance(self.text, AttentionReply) else self.text


class Conversation(Protocol):
    """What a channel supplies about a text: its author, and how commands are written there."""

    @property
    def rt(self) -> Runtime:
        """The services."""
        ...

    @property
    def wording(self) -> Wording:
        """How commands are written there."""
        ...

    async def actor(self) -> Actor:
        """Return the author; raises NotPermitted."""
        ...

    def error_spans(self, error: DraftsmanError) -> Spans:
        """Return an error as the channel shows it."""
        ...


@dataclass(frozen=True, slots=True)
class KnownAuthor:
    """A conversation whose author is known beforehand, and whose errors are shown as they are."""

    rt: Runtime
    author: Actor
    wording: Wording

    async def actor(self) -> Actor:
        """Return the author."""
        return self.author

    def error_spans(self, error: DraftsmanError) -> Spans:
        """Return the error."""
        return (str(error),)


async def respond(
    conversation: Conversation, text: WrittenText, place: Place, resolved: Resolved
) -> TextReply | None:
    """Submit or execute a text in the name of its author; None for talk.

    A change of an accepted answer, a request, and a command of one channel are not for it.
    """
    parsed = text.parsed
    if parsed is None or resolved.outcome is Outcome.TALK:
        return None
    if resolved.outcome not in (Outcome.ANSWER, Outcome.COMMAND, Outcome.MESSAGE):
        job = _job_of(place, resolved)
        return TextReply(ReplyKind.REPLIED, job, (explain(resolved, parsed, conversation.wording),))
    jobs = resolved.jobs
    if resolved.outcome is Outcome.MESSAGE:
        jobs = await agent_jobs(conversation.rt, place)
        if not jobs:
            return None
        if len(jobs) > 1 or text.change is Change.EDITED:
            outcome = Outcome.WHICH_JOB if len(jobs) > 1 else Outcome.EDITED_COMMAND
            resolved = replace(resolved, outcome=outcome, jobs=jobs)
            tell = replace(parsed, verb="tell")
            words = explain(resolved, tell, conversation.wording)
            return TextReply(ReplyKind.REPLIED, jobs[0], (words,))
    actor = await conversation.actor()
    try:
        if resolved.outcome is Outcome.ANSWER:
            return await _submit(conversation, text, resolved, actor)
        if resolved.questions:
            return await _attend(conversation, parsed, resolved.questions[0], actor)
        return await _change(conversation, text, jobs[0], actor)
    except (NotFound, NotPermitted, Refused, UsageError) as error:
        job = resolved.questions[0].job if resolved.questions else jobs[0]
        return TextReply(ReplyKind.REFUSED, job, conversation.error_spans(error))


def _job_of(place: Place, resolved: Resolved) -> int | None:
    numbers = [question.job for question in resolved.questions[:1]]
    return next(iter([*numbers, *resolved.jobs, *(job.number for job in place.jobs)]), None)


async def _submit(
    conversation: Conversation, text: WrittenText, resolved: Resolved, actor: Actor
) -> TextReply:
    question = resolved.questions[0]
    key = text.version or text.key
    verdict = await submit(conversation.rt, question, resolved, key, actor)
    return await reply_to_answer(conversation.rt, conversation.wording, verdict, actor)


async def reply_to_answer(
    rt: Runtime, wording: Wording, verdict: Verdict, actor: Actor | None = None
) -> TextReply:
    """Return the reply to an answer, which is empty where the question's message shows the result.

    The reply to a refusal says whether the `actor` is not mapped to a person.
    """
    spans = () if is_shown_by_question(verdict) else verdict_spans(verdict)
    resume = wording.command("resume", job_name(verdict.job))
    if note := await pause_note(rt, verdict.job, verdict, resume):
        spans = (*spans, " ", note) if spans else (note,)
    kind = ReplyKind.ANSWERED if verdict.accepted else ReplyKind.REFUSED
    if verdict.recorded:
        kind = ReplyKind.RECORDED
    if kind is ReplyKind.REFUSED and actor is not None and actor.person is None:
        spans = (*spans[:-1], " (this account is not mapped to a person).")
    return TextReply(kind, verdict.job, spans)


async def _attend(
    conversation: Conversation, parsed: ParsedText, question: Question, actor: Actor
) -> TextReply:
    """Acknowledge, snooze or delegate a question."""
    named = (question.job, question.ordinal)
    reply = await attention.execute(conversation.rt, actor, parsed.verb, named, parsed.text)
    return TextReply(ReplyKind.ATTENDED, question.job, reply)


async def _change(
    conversation: Conversation, text: WrittenText, job: int, actor: Actor
) -> TextReply:
    """Send a message to the agent of a job, or pause, resume or cancel it."""
    parsed = text.parsed or ParsedText()
    if parsed.verb in job_controls.VERBS:
        reply = await job_controls.change(
            conversation.rt, job, actor, parsed.verb, parsed.text, text.key
        )
        return TextReply(ReplyKind.CHANGED, job, (reply,))
    message = parsed.text if parsed.verb == "tell" else parsed.answer
    sent = await conversation.rt.messages.send(job, actor, message, event=text.key)
    return TextReply(ReplyKind.SENT, job, (f"{sent}.",))


async def submit(
    rt: Runtime, question: Question, resolved: Resolved, key: str, actor: Actor
) -> Verdict:
    """Submit the answer of a text; raises UsageError, NotFound."""
    if (decision := resolved.decision) is not None:
        response = build_response(
            key, question.name, decision=decision.approved, reason=decision.reason
        )
    else:
        response = build_response(key, question.name, text=resolved.text)
    return await rt.questions.answer(question.job, question.ordinal, response, actor)


def verdict_spans(verdict: Verdict) -> Spans:
    """Return the reply to an answer whose question does not show all of it."""
    if verdict.recorded:
        return (already_recorded(verdict),)
    if not verdict.accepted:
        reason = verdict.reason_spans or ("it was rejected",)
        return ("Your answer was not accepted: ", *reason, ".")
    if verdict.resolved:
        outcome = str((verdict.resolution or {}).get("outcome", "answered"))
        answer = f": {verdict.answer_text}" if verdict.answer_text else ""
        return (f"{verdict.name} is {outcome}{answer}.",)
    votes = f"{verdict.votes} of {verdict.quorum}"
    return (f"{verdict.name}: your approval was recorded, {votes}.",)


def explain(resolved: Resolved, parsed: ParsedText, wording: Wording) -> str:
    """Return why a text was neither submitted nor executed, and what to write instead."""
    names = ", ".join(question.name for question in resolved.questions)
    jobs = " or ".join(map(job_name, resolved.jobs))
    first = resolved.questions[0].name if resolved.questions else ""
    verb = resolved.decision.verb if resolved.decision else parsed.verb or "answer"
    example = wording.command(verb, first or job_name([*resolved.jobs, 142][0]), "…")
    match resolved.outcome:
        case Outcome.AMBIGUOUS if verb in ATTENTION:
            return f"Name an open question: {example} Asked here: {names}."
        case Outcome.AMBIGUOUS:
            return f"Which question does this answer: {names}? Write {example}"
        case Outcome.NO_TEXT:
            return f"{first} needs text or a choice: a file is not an answer."
        case Outcome.WRONG_KIND if resolved.questions[0].kind is QuestionKind.INPUT:
            return f"{first} is a question, not an approval: it needs text or a choice."
        case Outcome.WRONG_KIND:
            approve = wording.decision("approve")
            deny = wording.decision("deny REASON")
            return f"{first} needs a decision: reply {approve} or {deny}."
        case Outcome.UNKNOWN_COMMAND:
            typed = wording.command("answer", first, f"/{parsed.unknown} …")
            known = command_names(wording.surface)
            unknown = f"/{parsed.unknown} is no command; commands: {known}."
            return f"{unknown} To answer with this text: {typed}"
        case Outcome.NOT_HERE:
            return f"{parsed.ref or 'No question'} was{' not' if parsed.ref else ''} asked here."
        case Outcome.WHICH_JOB if jobs:
            return f"Which job is meant: {jobs}? Write {example}"
        case Outcome.WHICH_JOB:
            return f"No job was requested here; name it: {example}"
        case _:
            return f"An edit is not executed. Write another comment: {example}"
