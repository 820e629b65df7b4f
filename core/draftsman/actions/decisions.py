"""Actions on answers, decisions and cancels that do not count yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from draftsman.actions.action import About, ActionResult, Call, Surface, action
from draftsman.deliveries.question_text import closed_locally, closed_step
from draftsman.errors import CommandHint, Refused
from draftsman.formats.times import span
from draftsman.ids import job_name
from draftsman.questions.question import QuestionStatus

if TYPE_CHECKING:
    from draftsman.jobs.pending_decisions.pending_decision import PendingDecision


@action(About.DECISION, surfaces={Surface.COMMANDS})
async def undo(call: Call, decision: PendingDecision) -> ActionResult[PendingDecision]:
    """Undo an answer, a decision or a cancel that does not count yet."""
    if not await call.rt.pending_decisions.undo(decision):
        raise await _not_pending(call, decision.job, decision.question)
    data = {"job": decision.job, "ordinal": decision.question, "applies_at": decision.applies_at}
    again = CommandHint("answer", decision.name, lead="to answer again")
    if decision.question is None:
        return ActionResult("undone: it is not canceled", decision, data=data)
    if decision.response.decision is not None:
        again = CommandHint("questions", decision.name, lead="to decide again")
    return ActionResult("undone: it does not count", decision, then=again, data=data)


async def pending(
    call: Call, job: int | None = None, ordinal: int | None = None
) -> PendingDecision:
    """Return what the person can undo: of a question, of a job, or the newest of all.

    Raises Refused if there is none, with what counts instead.
    """
    service = call.rt.pending_decisions
    if job is not None and ordinal is not None:
        held = await service.of_question(job, ordinal, call.actor)
    else:
        held = await service.newest_of(call.actor, job)
    if held is None:
        raise await _not_pending(call, job, ordinal)
    return held


async def _not_pending(call: Call, job: int | None, ordinal: int | None) -> Refused:
    """Return why there is nothing to undo, and what to do now."""
    if job is None:
        window = call.rt.settings.questions.undo
        when = "; all others, such as those of scripts, count at once"
        text = f"on a terminal or in a browser can be undone for {span(window)}{when}"
        return Refused(f"nothing to undo: your answers {text if window else 'count at once'}")
    if ordinal is None:
        return Refused(
            "has no answer or cancel of yours that can be undone",
            subject=job_name(job),
            hint=CommandHint("show", job_name(job), lead="to see what counts"),
        )
    question = await call.rt.questions.get(job, ordinal)
    if question.status is QuestionStatus.OPEN:
        return Refused(
            "has no answer of yours that can be undone; it is open",
            subject=question.name,
            hint=CommandHint("questions", question.name, lead="to answer it"),
        )
    status = (await call.rt.read_model.job(job)).status
    return Refused(
        f"{closed_locally(question)}; it can no longer be undone", hint=closed_step(job, status)
    )
