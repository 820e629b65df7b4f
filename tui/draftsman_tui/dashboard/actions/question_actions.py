"""Answering questions: choices by number, free text, gates with the diff in view."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from draftsman.domain.answer import Response, Verdict
from draftsman.domain.job import Status
from draftsman.domain.question import Question, QuestionKind, QuestionStatus
from draftsman.errors import DraftsmanError, Refused
from draftsman_tui.common.answer_submission import build_response, outcome_text, submit_response
from draftsman_tui.common.question_text import answerers
from draftsman_tui.common.times import clock, left, parse_duration
from draftsman_tui.dashboard.actions.job_actions import patch
from draftsman_tui.dashboard.actions.question_watch import ask_watched, votes
from draftsman_tui.dashboard.dialogs.answer_dialog import AnswerDialog
from draftsman_tui.dashboard.dialogs.approval_dialog import ApprovalDialog
from draftsman_tui.dashboard.dialogs.confirm_dialog import ConfirmDialog
from draftsman_tui.dashboard.dialogs.prompt_dialog import PromptDialog

if TYPE_CHECKING:
    from draftsman_tui.dashboard.screens.base import BaseScreen

HandIn = Callable[[Any], Awaitable[str]]
"""Hands in what a dialog has; returns what became of it."""


async def answer(desk: BaseScreen, text: str) -> None:
    """Answer the question, by what is given or in a dialog; a gate is decided."""
    asked = await _question(desk)
    if asked.kind is QuestionKind.APPROVAL:
        await _decide(desk, asked, None, text)
        return
    hand_in = _handing_in(desk, asked, lambda said: {"text": said})
    error = ""
    if text:
        try:
            desk.show_message(await hand_in(text))
        except Refused:
            raise
        except DraftsmanError as problem:  # nothing was kept: what was typed is not lost
            error = str(problem)
        else:
            return
    dialog = AnswerDialog(
        asked,
        await answerers(desk.rt, asked),
        hand_in,
        clock=lambda: desk.live.now,
        error=error,
        text=text,
    )
    if said := await ask_watched(desk, dialog):
        desk.show_message(said)


async def approve(desk: BaseScreen, text: str) -> None:
    """Approve, after a look."""
    await _decide(desk, await _gate(desk), True, text)


async def deny(desk: BaseScreen, text: str) -> None:
    """Deny, after a look."""
    await _decide(desk, await _gate(desk), False, text)


async def extend(desk: BaseScreen, text: str) -> None:
    """Give the question more time."""
    asked = await _question(desk)

    async def extended(given: str) -> str:
        seconds = None if given.strip() == "never" else parse_duration(given)
        until = await desk.rt.questions.extend(asked.job, asked.ordinal, seconds, desk.actor)
        when = f"expires {left(until)}, at {clock(until)}" if until else "never expires"
        return f"{asked.name} {when}"

    if text:
        desk.show_message(await extended(text))
        return
    question = f"How much more time for {asked.name}?"
    if said := await desk.ask(PromptDialog(question, "30m, 2h, 1d, or never", extended)):
        desk.show_message(said)


async def _decide(desk: BaseScreen, asked: Question, decision: bool | None, reason: str) -> None:
    hand_in = _handing_in(
        desk, asked, lambda given: {"decision": given[0], "reason": given[1] or None}
    )
    dialog = ApprovalDialog(
        asked,
        await answerers(desk.rt, asked),
        hand_in,
        clock=lambda: desk.live.now,
        votes=await votes(desk.rt, asked),
        diff=await patch(desk.rt, asked.job, asked.run),
        decision=decision,
        reason=reason,
    )
    if said := await ask_watched(desk, dialog):
        desk.show_message(said)


def _handing_in(
    desk: BaseScreen, asked: Question, fields: Callable[[Any], dict[str, Any]]
) -> HandIn:
    """Return what hands in an answer, which counts once however often it is tried."""
    event = f"tui:{uuid4()}"

    async def hand_in(given: Any) -> str:
        said = build_response(event=event, **fields(given))
        try:
            verdict = await submit_response(desk.rt, asked.job, asked.ordinal, said, desk.actor)
        except Refused:
            carried_on = await _carry_on(desk, asked, said)
            if carried_on is None:
                raise
            return carried_on
        return _told(verdict)

    return hand_in


async def _carry_on(desk: BaseScreen, asked: Question, said: Response) -> str | None:
    """Offer to run the job anew with an answer that came too late; None where that cannot be."""
    if asked.kind is not QuestionKind.INPUT:
        return None
    now = await desk.rt.questions.get(asked.job, asked.ordinal)
    _, answers = await desk.rt.questions.of_job(asked.job)
    is_late = any(
        one.payload.get("late") for one in answers if one.source_event_id == said.source_event_id
    )
    job = await desk.rt.read_model.job(asked.job)
    if now.status is not QuestionStatus.EXPIRED or not is_late or job.status is not Status.EXPIRED:
        return None
    question = f"{asked.name} expired before. Run {job.name} anew with your answer?"
    if not await desk.ask(ConfirmDialog(question, "It goes on as a new job, from its checkpoint.")):
        return None
    made = await desk.rt.job_control.retry(asked.job, desk.actor, with_answer=True)
    return f"{job.name} goes on as {made.name}, with your answer"


def _told(verdict: Verdict) -> str:
    return f"{verdict.name} {outcome_text(verdict)}"


async def _gate(desk: BaseScreen) -> Question:
    asked = await _question(desk)
    if asked.kind is not QuestionKind.APPROVAL:
        raise Refused(f"{asked.name} is a question, not a gate; answer it")
    return asked


async def _question(desk: BaseScreen) -> Question:
    """Return the question of the row: its own, or the open one of its job."""
    if len(desk.ids) > 1:
        raise Refused("one at a time: take the marks off with esc")
    if desk.question is not None:
        return await desk.rt.questions.get(*desk.question)
    number = desk.jobs()[0]
    found = await desk.rt.questions.open(number)
    if not found:
        raise Refused(f"D-{number} has no open question; w says what it waits for")
    return found[0]
