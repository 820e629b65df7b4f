"""Actions that request a job: new, with its queue reserved, and of a finished job with changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from draftsman.actions.action import TERMINALS, About, ActionResult, Call, Surface, action
from draftsman.deliveries.documents.document import Time
from draftsman.errors import Refused
from draftsman.ids import job_name
from draftsman.jobs.fits import REVISABLE
from draftsman.jobs.job import AGENT_TYPE, Condition, Status
from draftsman.jobs.requests.entered_form import EnteredForm
from draftsman.jobs.requests.uncommitted_changes import FIELD
from draftsman.people.policy import Verb
from draftsman.text import humanize

if TYPE_CHECKING:
    from draftsman.job_types.published.description import TypeDescription
    from draftsman.jobs.requests.invocation import Invocation
    from draftsman.jobs.requests.service.submissions import SubmittedJob
    from draftsman.queues.queue_models import QueueReservation


def submitted(job: SubmittedJob, *, is_unique: bool = True) -> ActionResult[SubmittedJob]:
    """Return the job of a request, which job it replaces, and why it was skipped.

    `is_unique`: the request joins an equal job, not one of the same subject.
    """
    says = str(job.outcome)
    if job.replaced is not None:
        says += f"; it replaces {job_name(job.replaced)}, which was canceled before its start"
    if job.outcome == "created" and job.status is Status.CANCELED:
        why = "a job that it waits for did not complete, or its group stopped or was canceled"
        says += f" and skipped: {why}"
    if job.outcome == "joined":
        equal = f"an equal job is {humanize(job.status)}"
        same = equal if is_unique else "a live job has the same subject"
        says += f": {same}; your request was added to its history"
    warnings = () if job.warning is None else (job.warning,)
    return ActionResult(says, job, subject=job.name, warnings=warnings)


@action(
    About.REQUEST,
    label="New job",
    right=Verb.SUBMIT,
    surfaces=frozenset(Surface) - {Surface.PAGES},
)
async def submit(call: Call, request: Invocation) -> ActionResult[SubmittedJob]:
    """Submit a job."""
    job = await call.rt.submissions.submit(request, call.actor)
    return submitted(job, is_unique=request.unique is not None)


@action(
    About.REQUEST,
    label="Run a type",
    right=Verb.SUBMIT,
    surfaces=TERMINALS | {Surface.PAGES, Surface.PROGRAMS},
)
async def run_type(
    call: Call, type: TypeDescription, parameters: Mapping[str, Any]
) -> ActionResult[SubmittedJob]:
    """Submit a job of a described type."""
    request = await call.rt.request_checks.of_type(type, EnteredForm(parameters, event=call.event))
    return submitted(await call.rt.submissions.submit(request, call.actor))


@action(About.REQUEST, right=Verb.SUBMIT, surfaces={Surface.COMMANDS})
async def submit_many(
    call: Call, requests: Sequence[Invocation]
) -> ActionResult[list[SubmittedJob]]:
    """Submit the jobs of a batch, all or none."""
    jobs = await call.rt.submissions.submit_many(requests, call.actor)
    return ActionResult(f"submitted: {len(jobs):,}", jobs, subject="jobs")


@action(About.REQUEST, right=Verb.RESERVE, surfaces={Surface.COMMANDS})
async def submit_now(
    call: Call, request: Invocation, seconds: float
) -> ActionResult[tuple[SubmittedJob, QueueReservation | None]]:
    """Submit a job that reserves its queue."""
    job, reservation = await call.rt.reservations.submit(request, call.actor, seconds)
    result = submitted(job)
    reserved: tuple[str | Time, ...] = (
        "; its queue is not reserved, because the job existed before",
    )
    if reservation is not None:
        until = Time(reservation.expires_at)
        reserved = (f"; the queue {reservation.queue!r} is reserved for it until ", until)
    return ActionResult(result.says, (job, reservation), reserved, subject=job.name)


async def revisable(call: Call, job: int, **_: object) -> None:
    """Raise Refused unless the job has ended and has a text; raises NotPermitted."""
    call.rt.policy.check(call.actor, Verb.SUBMIT)
    details = await call.rt.read_model.job(job)
    REVISABLE.check(details.name, details.status)
    if details.type != AGENT_TYPE:
        raise Refused(f"is a job of type {details.type}, which has no text", subject=details.name)


@action(
    About.JOB,
    label="Retry with changes",
    right=Verb.SUBMIT,
    fits=REVISABLE,
    check=revisable,
    surfaces={Surface.CONTROLS},
)
async def revise(call: Call, job: int, request: Invocation) -> ActionResult[SubmittedJob]:
    """Submit the request of a finished job with changes."""
    await revisable(call, job)
    payload = (await call.rt.read_model.job(job)).payload
    if FIELD in payload and request.repo == payload["repo"]["source"]:
        kept = {FIELD: payload[FIELD]}
        request = request.model_copy(update={"payload": request.payload | kept})
    # It has ended: the new job gets its result, and starts at once.
    changes = {"after": (job,), "on": Condition.ANY, "attachments_of": job}
    new = await call.rt.submissions.submit(request.model_copy(update=changes), call.actor)
    return ActionResult("is done again, with changes,", new, (f" as {new.name}",))
