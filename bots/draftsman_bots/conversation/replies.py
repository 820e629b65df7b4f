"""Actions of what people write and press in chats, and the words of all replies to them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Protocol

from draftsman.actions import jobs, questions
from draftsman.actions.action import About, Action, ActionResult, Call
from draftsman.actions.questions import AnswerRefused
from draftsman.deliveries.question_text import already_recorded, next_step, refusal_text
from draftsman.errors import CORRECTABLE, CommandHint, DraftsmanError, NotPermitted, UsageError
from draftsman.ids import job_name, parse_job, parse_question
from draftsman.people.spans import ActorRef
from draftsman.questions.question import Decision, QuestionKind
from draftsman.questions.response import build_response
from draftsman_bots.conversation.commands import COMMANDS, Surface, command_names, near_command
from draftsman_bots.conversation.parser import ATTENTION, ParsedText
from draftsman_bots.conversation.places import agent_jobs, load_place
from draftsman_bots.conversation.resolution import (
    Change,
    Outcome,
    Place,
    Resolved,
    Talk,
    WrittenText,
    resolve,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from draftsman.deliveries.documents.document import Text
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

    def hint(self, hint: CommandHint | None) -> str:
        """Return the sentence about a command that is written there; "" for any other."""
        known = COMMANDS.get(hint.name) if hint is not None else None
        if hint is None or known is None or self.surface not in known.surfaces:
            return ""
        return f" {hint.lead.capitalize()}: {self.command(hint.line)}"

    def way(self, hint: CommandHint) -> str:
        """Return the sentence about a command, which may be one of a terminal only."""
        return self.hint(hint) or f" {hint.lead.capitalize()}, in a terminal: draftsman {hint.line}"


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


DECIDING: Final[dict[Decision, Action[Any, ..., Any]]] = {
    Decision.APPROVE: questions.approve,
    Decision.DENY: questions.deny,
    Decision.REQUEST_CHANGES: questions.request_changes,
}
"""The actions of decisions."""
DECISIONS: Final = {action.key: decision for decision, action in DECIDING.items()}
"""The decisions of actions, by their keys."""
KINDS: Final = {
    **dict.fromkeys((questions.answer.key, *DECISIONS), ReplyKind.ANSWERED),
    **dict.fromkeys(
        (questions.acknowledge.key, questions.snooze.key, questions.delegate.key),
        ReplyKind.ATTENDED,
    ),
    jobs.tell.key: ReplyKind.SENT,
}
"""Results of actions, by their keys; others change something."""


@dataclass(frozen=True, slots=True)
class TextReply:
    """The result of a text or a control, and the reply to its author.

    The `text` is empty if the message of the question shows the result; `whole` has it always.
    """

    kind: ReplyKind
    job: int | None
    whole: Text = ()
    is_shown: bool = False

    @property
    def text(self) -> Text:
        """The reply, unless the message of the question shows it."""
        return () if self.is_shown else self.whole

    @property
    def spans(self) -> Spans:
        """The reply with people only: times and commands are spelled."""
        return tuple(span if isinstance(span, str | ActorRef) else str(span) for span in self.text)


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

    @property
    def account(self) -> Actor:
        """The account of the author."""
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

    @property
    def account(self) -> Actor:
        """The account of the author."""
        return self.author

    async def actor(self) -> Actor:
        """Return the author."""
        return self.author

    def error_spans(self, error: DraftsmanError) -> Spans:
        """Return the error."""
        return (str(error),)


async def respond_to_text(
    author: KnownAuthor,
    parsed: ParsedText | None,
    key: str,
    jobs: Iterable[int],
    asked: Callable[[Question], bool],
    *,
    talk: Talk = Talk.ALL,
) -> TextReply | None:
    """Respond to a text where these jobs are, and those of their questions that were `asked` there.

    The same `key` has no second effect; None for talk.
    """
    place = await load_place(author.rt, talk, author.author, jobs, asked)
    text = WrittenText(parsed, key)
    return await respond(author, text, place, resolve(text, place))


async def respond(
    conversation: Conversation, text: WrittenText, place: Place, resolved: Resolved
) -> TextReply | None:
    """Submit or execute a text in the name of its author; None for talk.

    A change of an accepted answer, a request, and a command of one channel are not for it.
    """
    try:
        return await _respond(conversation, text, place, resolved)
    except CORRECTABLE as error:
        job = _job_of(place, resolved)
        return TextReply(ReplyKind.REFUSED, job, conversation.error_spans(error))


async def _respond(
    conversation: Conversation, text: WrittenText, place: Place, resolved: Resolved
) -> TextReply | None:
    parsed = text.parsed
    if parsed is None or resolved.outcome is Outcome.TALK:
        return None
    if resolved.outcome not in (Outcome.ANSWER, Outcome.COMMAND, Outcome.MESSAGE):
        job = _job_of(place, resolved)
        return TextReply(ReplyKind.REPLIED, job, (explain(resolved, parsed, conversation.wording),))
    if resolved.outcome is Outcome.ANSWER:
        return await _answer(conversation, text, resolved)
    if resolved.questions:
        question = resolved.questions[0]
        row = (question.job, question.ordinal)
        return await act(conversation, _action(parsed), row, parsed.text, text.key)
    if resolved.outcome is Outcome.COMMAND:
        return await act(conversation, _action(parsed), resolved.jobs[0], parsed.text, text.key)
    agents = await agent_jobs(conversation.rt, place)
    if not agents:
        return None
    if len(agents) > 1 or text.change is Change.EDITED:
        outcome = Outcome.WHICH_JOB if len(agents) > 1 else Outcome.EDITED_COMMAND
        tell = replace(parsed, verb="tell")
        words = explain(replace(resolved, outcome=outcome, jobs=agents), tell, conversation.wording)
        return TextReply(ReplyKind.REPLIED, agents[0], (words,))
    return await act(conversation, jobs.tell, agents[0], parsed.answer, text.key)


async def respond_to_command(
    conversation: Conversation, parsed: ParsedText, key: str, **options: Any
) -> TextReply:
    """Execute a command that names its job or question, wherever that is; raises DraftsmanError."""
    action = _action(parsed)
    rt = conversation.rt
    if not parsed.ref:
        name = "D-142/1" if action.about is About.QUESTION else "D-142"
        raise UsageError(f"a {action.about} is required: {parsed.verb} {name}")
    if action.about is About.JOB:
        job = await rt.read_model.resolve(parse_job(parsed.ref))
        return await act(conversation, action, job, parsed.text, key, **options)
    ref, ordinal = parse_question(parsed.ref)
    job = await rt.read_model.resolve(ref)
    if ordinal is None:
        open_questions = await rt.questions.open(job)
        if not open_questions:
            raise UsageError(f"{job_name(job)} has no open question")
        listed = "; ".join(f"{item.verb} {item.name}: {item.text[:200]}" for item in open_questions)
        raise UsageError(f"a question is required: {listed}")
    return await act(conversation, action, (job, ordinal), parsed.text, key)


async def act(
    conversation: Conversation,
    action: Action[Any, ..., Any],
    row: Any,
    text: str,
    key: str,
    **options: Any,
) -> TextReply:
    """Take an action in the name of the author, once for each key; return the reply.

    Raises DraftsmanError, except for an answer that does not count.
    """
    actor = await conversation.actor()
    arguments = action.takes.parse(text)
    try:
        result = await action.run(Call(conversation.rt, actor, key), row, **arguments, **options)
    except AnswerRefused as error:
        return refused(error.verdict, actor, conversation.wording)
    kind = KINDS.get(action.key, ReplyKind.CHANGED)
    verdict = result.value
    is_shown = kind is ReplyKind.ANSWERED and result.then is None
    is_shown = is_shown and (verdict.resolved or verdict.duplicate)
    job = row if action.about is About.JOB else None
    if action.about is About.QUESTION:
        job = row[0]
    return TextReply(kind, job, said(result, conversation.wording), is_shown)


async def press(
    conversation: Conversation,
    action: Action[Any, ..., Any],
    row: Any,
    text: str,
    key: str,
    **options: Any,
) -> TextReply:
    """Take the action of a control, as `act` does; the refusal of an account is recorded."""
    try:
        return await act(conversation, action, row, text, key, **options)
    except NotPermitted as error:
        await _record_refusal(conversation, action, row, text, key, error, **options)
        raise


def said(result: ActionResult[Any], wording: Wording) -> Text:
    """Return what an action did, and the command of the channel that may follow."""
    hint = wording.hint(result.then)
    return (*result.spans, hint) if hint else result.spans


def refused(
    verdict: Verdict, actor: Actor | None = None, wording: Wording | None = None
) -> TextReply:
    """Return the reply to an answer that does not count, and what to do about a late one.

    It says whether the `actor` is not linked to a person.
    """
    if verdict.recorded:
        return TextReply(ReplyKind.RECORDED, verdict.job, (already_recorded(verdict),))
    reason = refusal_text(verdict)
    step = next_step(verdict)
    way = wording.way(step) if wording is not None and step is not None else ""
    unmapped = actor is not None and actor.person is None
    end = " (this account is not linked to a person)." if unmapped else "."
    return TextReply(
        ReplyKind.REFUSED, verdict.job, ("Your answer was not accepted: ", *reason, end, way)
    )


async def _record_refusal(
    conversation: Conversation,
    action: Action[Any, ..., Any],
    row: Any,
    text: str,
    key: str,
    error: NotPermitted,
    **options: Any,
) -> None:
    """Record an answer, or the cancel, retry or dismissal of a job, that was refused."""
    rt = conversation.rt
    account = conversation.account
    if action in (jobs.cancel, jobs.retry, jobs.dismiss):
        await rt.job_control.refuse(row, action.name, key, account, str(error))
    if KINDS.get(action.key) is not ReplyKind.ANSWERED:
        return
    decision = DECISIONS.get(action.key)
    if decision is None:
        response = build_response(key, text=text, **options)
    else:
        response = build_response(key, decision=decision, reason=text or None)
    job, ordinal = row
    await rt.questions.refuse(job, ordinal, response, account, str(error))


def _action(parsed: ParsedText) -> Action[Any, ..., Any]:
    """Return the action of a command; that of a text for the agent without one."""
    command = parsed.command
    return command.action if command is not None and command.action is not None else jobs.tell


def _job_of(place: Place, resolved: Resolved) -> int | None:
    numbers = [question.job for question in resolved.questions[:1]]
    return next(iter([*numbers, *resolved.jobs, *(job.number for job in place.jobs)]), None)


async def _answer(conversation: Conversation, text: WrittenText, resolved: Resolved) -> TextReply:
    question = resolved.questions[0]
    row = (question.job, question.ordinal)
    key = text.version or text.key
    if (decision := resolved.decision) is None:
        return await act(conversation, questions.answer, row, resolved.text, key)
    return await act(conversation, DECIDING[decision.decision], row, decision.reason or "", key)


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
            changes = wording.decision("request-changes TEXT")
            changes = f", {changes}" if resolved.questions[0].takes_changes else ""
            return f"{first} needs a decision: reply {approve}{changes} or {deny}."
        case Outcome.UNKNOWN_COMMAND:
            typed = wording.command("answer", first, f"/{parsed.unknown} …")
            near = near_command(parsed.unknown, wording.surface)
            more = parsed.literal.strip() != f"/{parsed.unknown}"
            known = f"commands: {command_names(wording.surface)}."
            line = wording.command(near, *["…"] * more)
            helps = f"did you mean {line}?" if near else known
            return f"/{parsed.unknown} is no command; {helps} To answer with this text: {typed}"
        case Outcome.NOT_HERE:
            return f"{parsed.ref or 'No question'} was{' not' if parsed.ref else ''} asked here."
        case Outcome.WHICH_JOB if jobs:
            return f"Which job is meant: {jobs}? Write {example}"
        case Outcome.WHICH_JOB:
            return f"No job was requested here; name it: {example}"
        case _:
            return f"An edit is not executed. Write another comment: {example}"
