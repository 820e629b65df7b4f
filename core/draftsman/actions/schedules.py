"""Actions on schedules and templates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from draftsman.actions.action import About, ActionResult, Call, Surface, action
from draftsman.actions.jobs import TERMINALS
from draftsman.formats.times import in_zone
from draftsman.people.policy import Verb

if TYPE_CHECKING:
    from draftsman.jobs.requests.service.submissions import SubmittedJob
    from draftsman.schedules.schedule import Schedule


@action(
    About.SCHEDULE,
    right=Verb.SCHEDULES,
    arguments="[REASON]",
    prompt="Pause {}: reason?",
    example="freeze",
    undo="resume",
    parse=lambda text: {"reason": text},
    surfaces=TERMINALS | {Surface.CONTROLS},
)
async def pause(call: Call, schedule: str, reason: str = "") -> ActionResult[Schedule]:
    """Pause a schedule: it does not fire until it is resumed."""
    paused = await call.rt.schedules.pause(schedule, call.actor, reason or None)
    return ActionResult(f"schedule {schedule}", "paused", paused)


@action(
    About.SCHEDULE,
    right=Verb.SCHEDULES,
    undo="pause",
    surfaces=TERMINALS | {Surface.CONTROLS},
)
async def resume(call: Call, schedule: str) -> ActionResult[Schedule]:
    """Resume a paused schedule, from its next occurrence on."""
    resumed = await call.rt.schedules.resume(schedule, call.actor)
    return ActionResult(
        f"schedule {schedule}", "resumed", resumed, (f"; next: {following(resumed)}",)
    )


@action(
    About.SCHEDULE,
    right=Verb.SCHEDULES,
    question="Remove schedule {}?",
    consequence="Deletes its history. Its jobs are kept.",
    destroys=True,
    surfaces=TERMINALS | {Surface.CONTROLS},
)
async def remove(call: Call, schedule: str) -> ActionResult[dict[str, Any]]:
    """Remove a schedule and its history; its jobs are kept."""
    await call.rt.schedules.remove(schedule, call.actor)
    return ActionResult(f"schedule {schedule}", "removed", {"name": schedule, "removed": True})


@action(
    About.SCHEDULE,
    right=Verb.SUBMIT,
    question="Run {} now?",
    consequence="Submits a job in your name, beside its occurrences.",
    surfaces=TERMINALS,
)
async def run(call: Call, schedule: str) -> ActionResult[SubmittedJob]:
    """Submit the job of a schedule now, in your name."""
    job = await call.rt.schedules.run(schedule, call.actor)
    return ActionResult(job.name, job.outcome, job)


def following(schedule: Schedule) -> str:
    """Return the next occurrence of a schedule, in its zone."""
    return in_zone(schedule.due_at, schedule.timezone) if schedule.due_at else "never"


# Actions on templates.


@action(
    About.TEMPLATE,
    name="run",
    right=Verb.SUBMIT,
    arguments="NAME=VALUE …",
    question="Run {}?",
    consequence="Submits a job.",
    surfaces=TERMINALS,
)
async def run_template(
    call: Call,
    template: str,
    parameters: Mapping[str, Any],
    fields: Mapping[str, Any] | None = None,
    *,
    unchecked: bool = False,
) -> ActionResult[SubmittedJob]:
    """Submit a job from a template."""
    request = await call.rt.templates.request(
        template, parameters, fields=fields, typed=True, unchecked=unchecked
    )
    job = await call.rt.submissions.submit(request, call.actor)
    return ActionResult(job.name, job.outcome, job)


@action(
    About.TEMPLATE,
    name="remove",
    right=Verb.TEMPLATES,
    question="Remove template {}?",
    consequence="Its versions are kept for the jobs that were made from them.",
    destroys=True,
    surfaces=TERMINALS,
)
async def remove_template(call: Call, template: str) -> ActionResult[dict[str, Any]]:
    """Remove a template."""
    await call.rt.templates.remove(template, call.actor)
    return ActionResult(f"template {template}", "removed", {"name": template, "removed": True})
