"""Submission of answers, with an explanation of each rejection."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

from draftsman.domain.answer import Response, Verdict
from draftsman.domain.question import QuestionKind, QuestionStatus
from draftsman.errors import DraftsmanError, LostRace, Refused, UsageError
from draftsman_tui.common.output import one_line

if TYPE_CHECKING:
    from draftsman.domain.people.actor import Actor
    from draftsman.runtime import Runtime


async def submit_response(
    rt: Runtime, job: int, ordinal: int, response: Response, actor: Actor
) -> Verdict:
    """Give an answer; raises Refused or LostRace, which say what to do, if it does not count."""
    verdict = await rt.questions.answer(job, ordinal, response, actor)
    if not verdict.accepted:
        raise await _refused(rt, verdict, response.source_event_id)
    return verdict


def outcome_text(verdict: Verdict) -> str:
    """Return in words what an accepted answer did."""
    if not verdict.resolved:
        return f"counted: {verdict.votes} of {verdict.quorum} approvals"
    how = verdict.resolution or {}
    said = how.get("value") or how.get("text")
    alone = ", by yourself" if how.get("self_approved") else ""
    status = str(verdict.job_status or "").replace("_", " ")
    answer = f": {one_line(str(said))}" if said else ""
    return f"{how.get('outcome')}{answer}{alone}; the job is {status}"


async def _refused(rt: Runtime, verdict: Verdict, event: str) -> DraftsmanError:
    """Return the error that tells why an answer does not count, and what to do."""
    text = verdict.reason or f"{verdict.name} does not take this answer"
    if (verdict.resolution or {}).get("via") == "person":
        return LostRace(f"{text}; yours is kept, and changes nothing")
    questions, answers = await rt.questions.of_job(verdict.job)
    if not any(one.payload.get("late") for one in answers if one.source_event_id == event):
        return Refused(text)
    question = next(one for one in questions if one.ordinal == verdict.question)
    if question.status not in (QuestionStatus.OPEN, QuestionStatus.EXPIRED):
        return Refused(f"{text}; yours is kept, and the job went on without it")
    option = " --with-answer" if question.kind is QuestionKind.INPUT else ""
    retry = f"draftsman retry D-{verdict.job}{option}"
    return Refused(f"{text}; yours is kept; once the job has expired, carry on with: {retry}")


def build_response(
    channel: str = "cli",
    *,
    text: str | None = None,
    decision: bool | None = None,
    reason: str | None = None,
    token: str | None = None,
    event: str | None = None,
) -> Response:
    """Return what is handed in, once for an `event`; raises UsageError where it is too long."""
    from pydantic import ValidationError

    from draftsman import field_errors

    try:
        return Response(
            source_event_id=event or f"{channel}:{uuid4()}",
            text=text,
            decision=decision,
            reason=reason,
            token=token,
        )
    except ValidationError as error:
        raise UsageError(": ".join(filter(None, field_errors.first_error(error)))) from None
