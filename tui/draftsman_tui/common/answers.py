"""Submission of answers and explanation of rejected answers."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

from pydantic import ValidationError

from draftsman import field_errors
from draftsman.errors import DraftsmanError, LostRace, Refused
from draftsman.formats.invisible import one_line
from draftsman.ids import job_name
from draftsman.questions.answer import Verdict
from draftsman.questions.question import QuestionKind, QuestionStatus
from draftsman.questions.response import Response
from draftsman.text import humanize
from draftsman_tui.common.jobs import pause_text

if TYPE_CHECKING:
    from draftsman.jobs.pending_decisions.pending_decision import PendingDecision
    from draftsman.people.actor import Actor
    from draftsman.runtime import Runtime


async def submit_response(
    rt: Runtime, job: int, ordinal: int, response: Response, actor: Actor
) -> Verdict:
    """Submit an answer; raises Refused or LostRace, with a hint, if it was rejected."""
    verdict = await rt.questions.answer(job, ordinal, response, actor)
    if not verdict.accepted:
        raise await rejection_error(rt, verdict, response.source_event_id)
    return verdict


async def hold_response(
    rt: Runtime, *, job: int, ordinal: int, response: Response, actor: Actor, window: float
) -> Verdict | PendingDecision:
    """Submit an answer that can be undone for `window` seconds; raises as `submit_response`.

    Returns the verdict of an answer that takes effect at once.
    """
    verdict = await rt.pending_decisions.answer(job, ordinal, response, actor, window)
    if isinstance(verdict, Verdict) and not verdict.accepted:
        raise await rejection_error(rt, verdict, response.source_event_id)
    return verdict


async def outcome_text(rt: Runtime, verdict: Verdict) -> str:
    """Describe the effect of an accepted answer, and how to resume a job that is paused."""
    if not verdict.resolved:
        return f"recorded: {verdict.votes} of {verdict.quorum} approvals"
    resolution = verdict.resolution or {}
    self_approval = " (your own request)" if resolution.get("self_approved") else ""
    answer = f": {one_line(verdict.answer_text)}" if verdict.answer_text else ""
    pause = await pause_text(rt, verdict.job)
    effect = f"stored, but {pause}" if pause else f"job {humanize(str(verdict.job_status or ''))}"
    return f"{resolution.get('outcome')}{answer}{self_approval}; {effect}"


async def rejection_error(rt: Runtime, verdict: Verdict, event: str) -> DraftsmanError:
    """Return the error that explains why an answer was rejected, with a hint."""
    text = verdict.reason or f"{verdict.name} does not accept this answer"
    if (verdict.resolution or {}).get("via") == "person":
        return LostRace(f"{text}; your answer was recorded but has no effect")
    questions, answers = await rt.questions.of_job(verdict.job)
    submitted = [answer for answer in answers if answer.source_event_id == event]
    if not any(answer.payload.get("late") for answer in submitted):
        return Refused(text)
    question = next(item for item in questions if item.ordinal == verdict.question)
    if question.status not in (QuestionStatus.OPEN, QuestionStatus.EXPIRED):
        return Refused(f"{text}; your answer was recorded, but the job continued without it")
    option = " --with-answer" if question.kind is QuestionKind.INPUT else ""
    retry = f"draftsman retry {job_name(verdict.job)}{option}"
    return Refused(f"{text}; your answer was recorded; after the job expires, run: {retry}")


def build_response(
    channel: str = "cli",
    *,
    text: str | None = None,
    decision: bool | None = None,
    reason: str | None = None,
    token: str | None = None,
    event: str | None = None,
) -> Response:
    """Build the answer, with a unique event id by default; raises UsageError if too long."""
    try:
        return Response(
            source_event_id=event or f"{channel}:{uuid4()}",
            text=text,
            decision=decision,
            reason=reason,
            token=token,
        )
    except ValidationError as error:
        raise field_errors.field_error(error) from None
