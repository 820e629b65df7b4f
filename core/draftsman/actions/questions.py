"""Actions on questions and approvals."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Final
from uuid import uuid4

from draftsman.actions.action import (
    CHATS,
    EVERYWHERE,
    REASON,
    UNDO,
    About,
    ActionResult,
    Arguments,
    Call,
    RefusedWithData,
    Surface,
    action,
)
from draftsman.actions.jobs import resume_hint
from draftsman.agent_runs.changes.comment_parsing import read_comments, split_comments
from draftsman.attention.attention import ACKNOWLEDGED, SNOOZED, parse_delay
from draftsman.deliveries.documents.document import LABELS, Time, local_text
from draftsman.deliveries.documents.document import Action as Control
from draftsman.deliveries.question_text import already_recorded, next_step, refusal_text
from draftsman.durations import parse_duration
from draftsman.errors import CommandHint, FieldError, UsageError
from draftsman.formats.times import until as in_time
from draftsman.ids import job_name, question_name
from draftsman.jobs.job import TERMINAL
from draftsman.people.policy import Verb
from draftsman.questions.answer import Verdict, parse_answer
from draftsman.questions.question import Decision, QuestionKind, QuestionStatus
from draftsman.text import first_line, humanize

if TYPE_CHECKING:
    from collections.abc import Sequence

    from draftsman.attention.attention import ReminderDelay
    from draftsman.deliveries.documents.document import Text
    from draftsman.jobs.pending_decisions.pending_decision import PendingDecision
    from draftsman.questions.question import Question
    from draftsman.questions.response import Response
    from draftsman.questions.review_comment import ReviewComment
    from draftsman.runtime import Runtime

QuestionRow = tuple[int, int]
"""A question: its job and its number."""
MAX_SHOWN: Final = 60
"""Characters of an answer or a reason that can still be undone."""


class AnswerRefused(RefusedWithData):
    """Your answer was not accepted.

    `verdict` says why, with references to people.
    """

    def __init__(self, message: str, verdict: Verdict, *, hint: CommandHint | None = None) -> None:
        super().__init__(message, verdict, hint=hint)
        self.verdict = verdict


class AnswerTooLate(AnswerRefused):
    """The answer of another person was first."""

    exit_code: ClassVar[int] = 4


@action(
    About.QUESTION,
    right=Verb.ANSWER,
    takes=Arguments("TEXT", lambda text: {"text": text}, "Answer to {}"),
    progress="Answering",
    undo=UNDO,
    surfaces=EVERYWHERE,
)
async def answer(
    call: Call,
    question: QuestionRow,
    text: str = "",
    *,
    choice: int | None = None,
    only: bool = False,
) -> ActionResult[Verdict | PendingDecision]:
    """Answer a question.

    A control has the number of its choice instead of a text.
    """
    return await respond(call, question, text=text, choice=choice, only=only)


@action(
    About.QUESTION,
    right=Verb.APPROVE,
    takes=REASON,
    progress="Approving",
    undo=UNDO,
    surfaces=EVERYWHERE,
)
async def approve(
    call: Call, question: QuestionRow, reason: str = "", *, token: str | None = None
) -> ActionResult[Verdict | PendingDecision]:
    """Approve a question that asks for approval."""
    return await respond(
        call, question, decision=Decision.APPROVE, reason=reason or None, token=token
    )


@action(
    About.QUESTION,
    label=LABELS[Control.DENY],
    right=Verb.APPROVE,
    takes=replace(REASON, prompt="Reason to deny {}", example="not on a Friday"),
    progress="Denying",
    undo=UNDO,
    surfaces=EVERYWHERE,
)
async def deny(
    call: Call, question: QuestionRow, reason: str = "", *, token: str | None = None
) -> ActionResult[Verdict | PendingDecision]:
    """Deny a question that asks for approval."""
    return await respond(call, question, decision=Decision.DENY, reason=reason or None, token=token)


@action(
    About.QUESTION,
    name="request-changes",
    label=LABELS[Control.REQUEST_CHANGES],
    right=Verb.APPROVE,
    takes=Arguments(
        "TEXT", lambda text: {"text": text}, "What should change in {}?", "add a test for zero"
    ),
    progress="Requesting changes",
    undo=UNDO,
    surfaces=EVERYWHERE,
)
async def request_changes(
    call: Call,
    question: QuestionRow,
    text: str = "",
    *,
    comments: Sequence[str] = (),
    token: str | None = None,
) -> ActionResult[Verdict | PendingDecision]:
    """Request changes of work, which its agent makes.

    People are asked again about the new work. Comments on a file or a line are `FILE:LINE=TEXT` or
    `FILE=TEXT`, also as lines of the text.
    """
    import asyncio

    asked = await call.rt.questions.get(*question)
    read: list[ReviewComment] = []
    if asked.takes_changes and (patch := await call.rt.changes.patch_of(asked)):
        text, read = await asyncio.to_thread(split_comments, text, patch)
        named = [line for line in comments if line.strip()]
        read += await asyncio.to_thread(read_comments, named, patch)
    elif asked.takes_changes and comments:
        problem = f"{asked.name} has no diff to comment on; write what to change"
        raise FieldError(problem, field="comments")
    return await respond(
        call,
        question,
        decision=Decision.REQUEST_CHANGES,
        reason=text.strip() or None,
        comments=read,
        token=token,
    )


async def respond(
    call: Call,
    question: QuestionRow,
    *,
    text: str | None = None,
    choice: int | None = None,
    decision: Decision | None = None,
    reason: str | None = None,
    comments: Sequence[ReviewComment] = (),
    token: str | None = None,
    only: bool = False,
) -> ActionResult[Verdict | PendingDecision]:
    """Submit a response to a question; raises AnswerRefused if it does not count."""
    from draftsman.questions.response import build_response

    response = build_response(
        call.event or f"{call.actor.channel}:{uuid4()}",
        question_name(*question),
        text=text,
        choice=choice,
        decision=decision,
        reason=reason,
        comments=[comment.as_json() for comment in comments],
        token=token,
    )
    if call.window and token is None:  # a token is a secret, which is not stored
        held = await call.rt.pending_decisions.answer(
            *question, response, call.actor, call.window, only=only
        )
        if not isinstance(held, Verdict):
            says = _held_says(await call.rt.questions.get(*question), response)
            return ActionResult(says, held, then=CommandHint("undo", held.name, lead="to undo"))
        verdict = held
    else:
        verdict = await call.rt.questions.answer(*question, response, call.actor, only=only)
    if not verdict.accepted:  # a token may be refused although its approver has voted
        told = replace(verdict, recorded=False) if token is not None else verdict
        raise await refusal(call.rt, told, response.source_event_id)
    return await answered(call.rt, verdict)


async def answered(rt: Runtime, verdict: Verdict) -> ActionResult[Verdict]:
    """Return what an accepted answer did; a paused job is named with the pause."""
    if not verdict.resolved:
        says = f"recorded: {verdict.votes} of {verdict.quorum} approvals"
        return ActionResult(says, verdict, subject=verdict.name)
    resolution = verdict.resolution or {}
    text = " ".join(verdict.answer_text.split())
    answer = f": {text}" if text else ""
    says = f"{humanize(str(resolution.get('outcome', 'answered')))}{answer}"
    detail: list[str] = [" (your own request)"] if resolution.get("self_approved") else []
    if verdict.duplicate:
        return ActionResult(says, verdict, tuple(detail), subject=verdict.name)
    pause = await pause_of(rt, verdict.job) if verdict.paused else ""
    detail.append(
        f"; stored, but {pause}" if pause else f"; job {humanize(str(verdict.job_status or ''))}"
    )
    if verdict.also:
        detail.append(f"; also answered: {', '.join(verdict.also)}")
    hint = resume_hint(verdict.job) if pause else None
    return ActionResult(says, verdict, tuple(detail), hint, subject=verdict.name)


async def pause_of(rt: Runtime, job: int) -> str:
    """Return who paused a job, and why: `D-142 is paused by anna: noon`; "" without a pause."""
    why = await rt.read_model.why(job)
    text = " ".join(why.text.split())
    return f"{job_name(job)} is {text}" if why.paused else ""


async def refusal(rt: Runtime, verdict: Verdict, event: str) -> AnswerRefused:
    """Return the error of an answer that does not count, and what became of it."""
    if verdict.recorded:
        kind = AnswerTooLate if verdict.resolved else AnswerRefused
        return kind(already_recorded(verdict).removesuffix("."), verdict)
    text = "".join(map(local_text, refusal_text(verdict)))
    if (verdict.resolution or {}).get("via") == "person":
        kept = "your answer was recorded but has no effect"
        return AnswerTooLate(f"{text}; {kept}", verdict, hint=next_step(verdict))
    questions, answers = await rt.questions.of_job(verdict.job)
    submitted = [answer for answer in answers if answer.source_event_id == event]
    if not any(answer.payload.get("late") for answer in submitted):
        return AnswerRefused(text, verdict)
    question = next(item for item in questions if item.ordinal == verdict.question)
    if question.status not in (QuestionStatus.OPEN, QuestionStatus.EXPIRED):
        late = "your answer was recorded, but the job continued without it"
        return AnswerRefused(f"{text}; {late}", verdict, hint=next_step(verdict))
    option = " --with-answer" if question.kind is QuestionKind.INPUT else ""
    has_ended = verdict.job_status in TERMINAL
    lead = "to run the job with it" if has_ended else "to run the job with it, once it has expired"
    retry = CommandHint("retry", f"{job_name(verdict.job)}{option}", lead=lead)
    return AnswerRefused(f"{text}; your answer was recorded", verdict, hint=retry)


def _held_says(question: Question, response: Response) -> str:
    """Return what an answer will do that can still be undone."""
    if response.decision is None:
        parsed = parse_answer(question, response)
        label = parsed.text if parsed.value is None else question.label_of(parsed.value)
        return f"answered: {first_line(label or '', MAX_SHOWN)}"
    reason = f": {first_line(response.reason, MAX_SHOWN)}" if response.reason else ""
    return f"{humanize(response.decision.outcome)}{reason}"


def parse_extension(text: str) -> dict[str, float | None]:
    """Parse a duration, or `never`; raises UsageError."""
    return {"seconds": None if text.strip() == "never" else parse_duration(text)}


@action(
    About.QUESTION,
    right=Verb.EXTEND,
    takes=Arguments("2h|never", parse_extension, "Extend {} by how long?", "30m, 2h, 1d or never"),
)
async def extend(
    call: Call, question: QuestionRow, seconds: float | datetime | None
) -> ActionResult[datetime | None]:
    """Extend the deadline of a question."""
    expires_at = await call.rt.questions.extend(*question, seconds, call.actor)
    data = question_data(question, expires_at=expires_at)
    if expires_at is None:
        return ActionResult("never expires", None, data=data)
    detail = (f" {in_time(expires_at)}, at ", Time(expires_at))
    return ActionResult("expires", expires_at, detail, data=data)


def question_data(question: QuestionRow, **fields: object) -> dict[str, object]:
    """Return the JSON document of what was done to a question."""
    return {"job": question[0], "ordinal": question[1], **fields}


@action(About.QUESTION, surfaces={Surface.COMMANDS})
async def mint_token(call: Call, question: QuestionRow, approver: str) -> ActionResult[str]:
    """Make a single-use token that approves or denies as you."""
    token = await call.rt.questions.mint_token(*question, approver, call.actor)
    use = CommandHint("approve", f"{question_name(*question)} --token -", lead="to use it")
    data = question_data(question, approver=approver, token=token)
    return ActionResult("has a single-use token, shown only once", token, then=use, data=data)


# Actions on the reminders of a question.


@action(
    About.QUESTION,
    name="ack",
    label=LABELS[Control.ACKNOWLEDGE],
    right=Verb.ANSWER,
    takes=Arguments("[1h]", lambda text: {"seconds": parse_delay(text, ACKNOWLEDGED)}),
    surfaces=CHATS,
)
async def acknowledge(
    call: Call, question: QuestionRow, seconds: float = ACKNOWLEDGED
) -> ActionResult[ReminderDelay]:
    """Acknowledge a question: you work on the answer, and others wait."""
    held = await call.rt.acknowledgments.acknowledge(*question, call.actor, seconds)
    detail = (" until ", Time(held.expires_at), "; others wait until then")
    data = question_data(question, person=held.person, until=held.expires_at)
    return ActionResult("acknowledged", held, detail, data=data)


@action(
    About.QUESTION,
    label=LABELS[Control.SNOOZE],
    right=Verb.ANSWER,
    takes=Arguments(
        "[2h]",
        lambda text: {"seconds": parse_delay(text, SNOOZED)},
        "Snooze {} for how long?",
        "30m, 2h, 1d",
    ),
    surfaces=CHATS,
)
async def snooze(
    call: Call, question: QuestionRow, seconds: float = SNOOZED
) -> ActionResult[datetime]:
    """Pause your own reminders of a question."""
    until = await call.rt.acknowledgments.snooze(*question, call.actor, seconds)
    detail = (" until ", Time(until), ": no reminders for you")
    return ActionResult("snoozed", until, detail, data=question_data(question, until=until))


def parse_delegation(text: str) -> dict[str, Any]:
    """Parse `bob`, `to bob 4h`, `bob for 1 h`; raises UsageError."""
    words = text.split()
    if words[:1] and words[0].casefold() == "to":
        del words[0]
    if not words:
        raise UsageError("a person is required: delegate to PERSON")
    person, *duration = words
    return {"person": person, "seconds": parse_delay(" ".join(duration), ACKNOWLEDGED)}


@action(
    About.QUESTION,
    label=LABELS[Control.DELEGATE],
    right=Verb.ANSWER,
    takes=Arguments("PERSON [1h]", parse_delegation, "Delegate {} to whom?", "bob 4h"),
    surfaces=CHATS,
)
async def delegate(
    call: Call, question: QuestionRow, person: str, seconds: float = ACKNOWLEDGED
) -> ActionResult[datetime]:
    """Ask another person to answer a question."""
    person = person_named(call, person)
    until = await call.rt.acknowledgments.delegate(*question, call.actor, person, seconds)
    detail: Text = (f" to {person}; others wait until ", Time(until))
    free_at = call.rt.policy.people[person].free_at(until - timedelta(seconds=seconds))
    is_away = free_at > until - timedelta(seconds=seconds)
    if is_away and not (await call.rt.questions.get(*question)).critical:
        detail += (f"; {person} is outside of their hours, and is notified at ", Time(free_at))
    data = question_data(question, person=person, until=until)
    return ActionResult("delegated", until, detail, data=data)


def person_named(call: Call, text: str) -> str:
    """Return the person of a name, or of a mention such as `@bob` or `<@U0BOB>`."""
    account = text.strip("<>").removeprefix("@").partition("|")[0]
    for person in call.rt.policy.people.values():
        ids = person.accounts(call.actor.channel)
        if account and account in (id.partition("@")[0] for id in ids):
            return person.name
    return account
