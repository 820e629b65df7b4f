"""Question commands: answer, approve, deny and request changes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final
from uuid import uuid4

from draftsman.actions import questions as actions
from draftsman.actions.action import Action
from draftsman.actions.jobs import retry
from draftsman.agent_runs.changes.review import Review
from draftsman.deliveries.question_text import closed_locally, holder_text
from draftsman.errors import DraftsmanError, Refused
from draftsman.formats.invisible import one_line
from draftsman.ids import job_name
from draftsman.jobs.job import Status
from draftsman.jobs.pending_decisions.pending_decision import PendingDecision
from draftsman.questions.answer import no_changes
from draftsman.questions.question import (
    Decision,
    Question,
    QuestionKind,
    QuestionStatus,
    asking_text,
)
from draftsman.runtime import Runtime
from draftsman_tui.common.artifacts import read_patch
from draftsman_tui.common.job_pages import source_of
from draftsman_tui.common.questions import REVIEW_MEBIBYTES, answerers, invoker_of
from draftsman_tui.dashboard.attention.question_holds import holds_of
from draftsman_tui.dashboard.command import QUESTION_VIEWS, CommandGroup, dashboard_command
from draftsman_tui.dashboard.frame.base_screen import BaseScreen
from draftsman_tui.dashboard.frame.perform import asked, call_of
from draftsman_tui.dashboard.jobs.details.section_items import request_text
from draftsman_tui.dashboard.questions import bulk_answers
from draftsman_tui.dashboard.questions.answer_dialog import AnswerDialog
from draftsman_tui.dashboard.questions.approval_dialog import ApprovalDialog, ReviewVerdict
from draftsman_tui.dashboard.questions.question_dialog import QuestionContext, QuestionDialog
from draftsman_tui.terminal.results import result_text

Submit = Callable[[Any], Awaitable[str]]
"""Submits the input of a dialog; returns a message with the outcome."""


@dashboard_command(
    "answer",
    CommandGroup.QUESTIONS,
    does=actions.answer,
    keys="a",
    on=QUESTION_VIEWS,
    takes="",
    footer=True,
)
async def answer(screen: BaseScreen, text: str) -> None:
    """Answer a question, or decide an approval with its diff.

    `text` is the answer; without one, a dialog opens.
    """
    if await bulk_answers.apply(screen, None, text):
        return
    question = await question_of(screen)
    if question.kind is QuestionKind.APPROVAL:
        await open_dialog(screen, question, text)
        return
    submit = _submitter(screen, question)
    error = ""
    if text:
        try:
            screen.show_message(await submit(text))
        except Refused:
            raise
        except DraftsmanError as rejected:  # the dialog opens with the rejected text to correct it
            error = str(rejected)
        else:
            return
    await open_dialog(screen, question, text, error=error)


def _decision_command(
    action: Action[actions.QuestionRow, ..., Any], decision: Decision, *, keys: str, takes: str = ""
) -> None:
    """Declare the command of a decision, with the diff, or on several after confirmation."""

    async def run(screen: BaseScreen, text: str) -> None:
        if not await bulk_answers.apply(screen, decision, text):
            await open_dialog(screen, await _approval(screen, decision), text, decision=decision)

    dashboard_command(
        action.name,
        CommandGroup.QUESTIONS,
        does=action,
        keys=keys,
        on=QUESTION_VIEWS,
        takes=takes,
    )(run)


_decision_command(actions.approve, Decision.APPROVE, keys="y")
_decision_command(actions.deny, Decision.DENY, keys="x", takes="REASON")
_decision_command(actions.request_changes, Decision.REQUEST_CHANGES, keys="W", takes="TEXT")


@dashboard_command("undo", CommandGroup.QUESTIONS, keys="u", writes=True)
async def undo(screen: BaseScreen, text: str) -> None:
    """Undo the newest answer, decision or cancel, until it takes effect."""
    if not screen.session.undo.batches:
        raise Refused("nothing to undo")
    if (batch := await screen.session.undo.undo()) is not None:
        screen.show_message(f"Undone: {batch.text}")


async def open_dialog(
    screen: BaseScreen,
    question: Question,
    text: str = "",
    *,
    decision: Decision | None = None,
    error: str = "",
    position: str = "",
) -> QuestionDialog[Any]:
    """Open the dialog of a question until it is answered, closed or left; returns the dialog.

    `text` is a draft of the answer or the reason; `position` is that in a review.
    """
    dialog: QuestionDialog[Any]
    review = await _review(screen, question)
    read_only = screen.session.read_only
    context = QuestionContext(
        responders=answerers(screen.rt, question, await invoker_of(screen.rt, question)),
        votes=await votes(screen.rt, question),
        position=position,
        job_summary=await _job_summary(screen, question),
        source=source_of(await screen.rt.read_model.job(question.job)),
        clock=screen.refresher.clock,
        session=screen.session,
        holds=None if read_only else await holds_of(screen.rt, screen.actor, question),
        read_request=partial(_request, screen, question.job),
    )
    if question.kind is QuestionKind.APPROVAL:
        dialog = ApprovalDialog(
            question,
            context,
            _submitter(screen, question),
            diff=await read_patch(screen.rt, question.job, question.run),
            review=review,
            decision=decision,
            reason=text,
        )
    else:
        dialog = AnswerDialog(
            question,
            context,
            _submitter(screen, question),
            error=error,
            text=text,
            changes=review.summary,
            read_diff=partial(read_patch, screen.rt, question.job, question.run),
        )
    screen.pin_preview(question.job)
    try:
        message = await ask_watched(screen, dialog)
    finally:
        if not screen.session.is_reviewing:
            screen.pin_preview(None)
    if message is not None:
        dialog.answered = True
    if message:
        screen.show_message(message)
    return dialog


async def _job_summary(screen: BaseScreen, question: Question) -> str:
    """Return the title and repository of the job, the holder, and the jobs of an answer.

    "" if it has no open question any more.

    Records that the person of the dashboard has seen the question.
    """
    jobs = await screen.rt.questions.open_of([question.job])
    if not screen.session.read_only:
        await screen.rt.figures.record_views(jobs, screen.actor)
    facts = [
        fact for job in jobs for fact in (one_line(job.title), job.repo, holder_text(job)) if fact
    ]
    asking = "".join(
        asking_text(job.job, job.others) for job in jobs if job.ordinal == question.ordinal
    )
    return "\n".join(filter(None, (" · ".join(facts), asking)))


async def _request(screen: BaseScreen, number: int) -> str:
    return request_text(await screen.rt.read_model.job(number))


async def _review(screen: BaseScreen, question: Question) -> Review:
    return await screen.rt.changes.of_question(question, most=REVIEW_MEBIBYTES)


def _submitter(screen: BaseScreen, question: Question) -> Submit:
    """Return a function that submits an answer, or a decision with its text.

    One event id deduplicates its retries. It returns "" for an answer that can be undone, which
    the undo line describes.
    """
    call = replace(call_of(screen, actions.answer), event=f"tui:{uuid4()}")
    row = (question.job, question.ordinal)

    async def submit(typed: str | ReviewVerdict) -> str:
        if isinstance(typed, str):
            submitted = actions.answer(call, row, typed)
        elif typed.decision is Decision.REQUEST_CHANGES:
            submitted = actions.request_changes(call, row, typed.text, comments=typed.comments)
        else:
            decide = bulk_answers.DECIDING[typed.decision]
            submitted = decide(call, row, typed.text)
        screen.release_rows([question.job])
        try:
            result = await submitted
        except Refused:
            retried = await _retry_with_answer(screen, question, call.event)
            if retried is None:
                raise
            return retried
        if isinstance(result.value, PendingDecision):
            screen.session.undo.hold(str(result), [result.value])
            return ""
        return result_text(result)

    return submit


async def _retry_with_answer(
    screen: BaseScreen, question: Question, event: str | None
) -> str | None:
    """Offer to retry an expired job with an answer that arrived late; None if not possible."""
    if question.kind is not QuestionKind.INPUT:
        return None
    current = await screen.rt.questions.get(question.job, question.ordinal)
    _, answers = await screen.rt.questions.of_job(question.job)
    is_late = any(
        answer.payload.get("late") for answer in answers if answer.source_event_id == event
    )
    job = await screen.rt.read_model.job(question.job)
    if (
        current.status is not QuestionStatus.EXPIRED
        or not is_late
        or job.status is not Status.EXPIRED
    ):
        return None
    prompt = f"{question.name} has expired. Retry {job.name} with your answer?"
    if not await asked(screen, prompt, retry.consequence):
        return None
    return f"{await retry(call_of(screen), question.job, with_answer=True)}, with your answer"


async def _approval(screen: BaseScreen, decision: Decision) -> Question:
    question = await question_of(screen)
    if question.kind is not QuestionKind.APPROVAL:
        raise Refused(f"{question.name} is a question, not an approval; press a to answer it")
    if decision is Decision.REQUEST_CHANGES and not question.takes_changes:
        raise no_changes(question)
    return question


async def question_of(screen: BaseScreen) -> Question:
    """Return the question of the row, or the only open question of its job."""
    screen.check_single("question")
    if screen.question is not None:
        return await screen.rt.questions.get(*screen.question)
    number = screen.jobs()[0]
    questions = await screen.rt.questions.open(number)
    if not questions:
        raise Refused(f"{job_name(number)} has no open question; press w to see its state")
    if len(questions) > 1:
        names = ", ".join(question.name for question in questions)
        raise Refused(
            f"{job_name(number)} has {len(questions)} open questions, {names};"
            " select one in the inbox, or in the tab questions of the job"
        )
    return questions[0]


POLL_INTERVAL: Final = 1.0


async def ask_watched(screen: BaseScreen, dialog: QuestionDialog[Any]) -> str | None:
    """Return the result of a dialog; close it with a message if the question closes meanwhile."""
    watch = asyncio.create_task(_watch(screen, dialog))
    try:
        return await screen.ask(dialog)
    finally:
        watch.cancel()


async def votes(rt: Runtime, question: Question) -> list[str]:
    """Return the people who approved so far, for an approval with a quorum above 1."""
    if question.kind is not QuestionKind.APPROVAL or question.quorum < 2:
        return []
    _, answers = await rt.questions.of_job(question.job)
    return [
        answer.voter
        for answer in answers
        if answer.accepted and answer.question == question.ordinal
    ]


async def closing_text(rt: Runtime, question: Question) -> str:
    """Return how a question closed: `D-7/1 was answered by ben: red (in slack)`."""
    _, answers = await rt.questions.of_job(question.job)
    sources = [
        answer.source
        for answer in answers
        if answer.accepted and answer.question == question.ordinal
    ]
    where = f" (in {sources[-1]})" if sources else ""
    return closed_locally(question, where)


async def _watch(screen: BaseScreen, dialog: QuestionDialog[Any]) -> None:
    question = dialog.question
    while not dialog.closed:
        await asyncio.sleep(POLL_INTERVAL)
        with contextlib.suppress(DraftsmanError):  # the banner shows a lost connection
            current = await screen.rt.questions.get(question.job, question.ordinal)
            if current.status is not QuestionStatus.OPEN:
                text = await closing_text(screen.rt, current)
                is_input = current.kind is QuestionKind.INPUT
                dialog.close(text, late=is_input and current.status is QuestionStatus.EXPIRED)
                if dialog.closed:
                    screen.show_message(text)
            else:
                dialog.update_question(current, await votes(screen.rt, current))
