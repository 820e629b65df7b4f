"""Actions on schedules and templates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from draftsman.actions.action import (
    REASON,
    TERMINALS,
    About,
    ActionResult,
    Arguments,
    Call,
    Subject,
    Surface,
    action,
)
from draftsman.actions.requests import submitted
from draftsman.entities.schedules import template_data
from draftsman.formats.amounts import counted
from draftsman.formats.times import in_zone
from draftsman.jobs.requests.entered_form import EnteredForm
from draftsman.people.policy import Verb

if TYPE_CHECKING:
    from draftsman.jobs.requests.service.submissions import SubmittedJob
    from draftsman.schedules.schedule import Schedule, ScheduleChange, ScheduleSpec
    from draftsman.schedules.template import Template, TemplateDefinition


@action(
    About.SCHEDULE,
    right=Verb.SUBMIT,
    undo="remove",
    surfaces={Surface.COMMANDS, Surface.CHAT, Surface.CONTROLS},
)
async def add(
    call: Call, spec: ScheduleSpec, *, replaces: bool = False, chats: bool = True
) -> ActionResult[Schedule]:
    """Add a schedule, which submits jobs in your name."""
    service = call.rt.schedules
    known = {schedule.name for schedule in await service.all()} if replaces else set()
    is_known = spec.name in known
    if is_known:
        schedule = await service.change(spec, call.actor)
    else:
        schedule = await service.add(spec, call.actor, chats=chats)
    says = f"{'changed' if is_known else 'added'}: {schedule.rule}"
    detail = (f"; next: {following(schedule)}",)
    return ActionResult(says, schedule, detail, subject=f"schedule {spec.name}")


async def removed_schedules(
    call: Call, origin: str, changes: Sequence[ScheduleChange], **_: object
) -> Subject:
    """Return the schedules that a file removes."""
    removed = [change.name for change in changes if change.action == "remove"]
    return Subject(
        f"{counted(len(changes), 'change')} of {origin}",
        note=(f"Removes {', '.join(removed)} with their history."),
        needs_question=bool(removed),
    )


@action(
    About.SCHEDULE,
    right=Verb.SCHEDULES,
    question="Apply {}?",
    consequence="Removes schedules that are not in the file, with their history.",
    destroys=True,
    guarded=True,
    check=removed_schedules,
    surfaces={Surface.COMMANDS},
)
async def apply(
    call: Call, origin: str, changes: Sequence[ScheduleChange]
) -> ActionResult[Sequence[ScheduleChange]]:
    """Apply the schedules of a file."""
    await call.rt.schedules.apply(changes, origin, call.actor)
    count = counted(len(changes), "change")
    return ActionResult(
        f"of {origin} applied: {count}",
        changes,
        data=plan_data(changes) | {"applied": bool(changes)},
        subject="schedules",
    )


def plan_data(changes: Sequence[ScheduleChange]) -> dict[str, Any]:
    """Return the JSON document of the changes of a file."""
    rows = [{"action": change.action, "name": change.name} for change in changes]
    return {"changes": rows, "applied": False}


@action(
    About.SCHEDULE,
    right=Verb.SCHEDULES,
    takes=replace(REASON, prompt="Pause {}: reason?", example="freeze"),
    undo="resume",
    surfaces=TERMINALS | {Surface.CONTROLS},
)
async def pause(call: Call, schedule: str, reason: str = "") -> ActionResult[Schedule]:
    """Pause a schedule: it does not fire until it is resumed."""
    return ActionResult(
        "paused", await call.rt.schedules.pause(schedule, call.actor, reason or None)
    )


@action(
    About.SCHEDULE,
    right=Verb.SCHEDULES,
    undo="pause",
    surfaces=TERMINALS | {Surface.CONTROLS},
)
async def resume(call: Call, schedule: str) -> ActionResult[Schedule]:
    """Resume a paused schedule, from its next occurrence on."""
    resumed = await call.rt.schedules.resume(schedule, call.actor)
    return ActionResult("resumed", resumed, (f"; next: {following(resumed)}",))


async def known_schedule(call: Call, schedule: str, **_: object) -> None:
    """Raise NotFound for an unknown schedule."""
    await call.rt.schedules.get(schedule)


@action(
    About.SCHEDULE,
    right=Verb.SCHEDULES,
    question="Remove {}?",
    consequence="Deletes its history. Its jobs are kept.",
    destroys=True,
    check=known_schedule,
    surfaces=TERMINALS | {Surface.CONTROLS},
)
async def remove(call: Call, schedule: str) -> ActionResult[dict[str, Any]]:
    """Remove a schedule and its history; its jobs are kept."""
    await call.rt.schedules.remove(schedule, call.actor)
    return ActionResult("removed", {"name": schedule, "removed": True})


@action(
    About.SCHEDULE,
    right=Verb.SUBMIT,
    question="Run {} now?",
    consequence="Submits a job in your name, beside its occurrences.",
)
async def run(call: Call, schedule: str) -> ActionResult[SubmittedJob]:
    """Submit the job of a schedule now, in your name."""
    return submitted(await call.rt.schedules.run(schedule, call.actor))


def following(schedule: Schedule) -> str:
    """Return the next occurrence of a schedule, in its zone."""
    return in_zone(schedule.due_at, schedule.timezone) if schedule.due_at else "never"


# Actions on templates.


@action(
    About.TEMPLATE, name="add", right=Verb.TEMPLATES, surfaces={Surface.COMMANDS}, undo="remove"
)
async def add_template(
    call: Call, template: str, definition: TemplateDefinition
) -> ActionResult[Template]:
    """Add a template of jobs."""
    added = await call.rt.templates.add(template, definition, call.actor)
    return ActionResult(f"added: version {added.version}", added, data=template_data(added))


@action(About.TEMPLATE, name="edit", right=Verb.TEMPLATES, surfaces={Surface.COMMANDS})
async def edit_template(
    call: Call, template: str, base: Template, definition: TemplateDefinition
) -> ActionResult[Template]:
    """Store a new version of a template."""
    stored = await call.rt.templates.edit(base, definition, call.actor)
    says = "unchanged" if stored.version == base.version else "changed"
    return ActionResult(f"{says}: version {stored.version}", stored, data=template_data(stored))


@action(
    About.TEMPLATE,
    name="run",
    right=Verb.SUBMIT,
    takes=Arguments("NAME=VALUE …"),
    question="Run {}?",
    consequence="Submits a job.",
    surfaces=TERMINALS | {Surface.CHAT, Surface.CONTROLS, Surface.PAGES},
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
    form = EnteredForm(parameters, typed=True, fields=fields or {}, event=call.event)
    request = await call.rt.templates.request(template, form, unchecked=unchecked)
    return submitted(await call.rt.submissions.submit(request, call.actor))


async def known_template(call: Call, template: str, **_: object) -> None:
    """Raise NotFound for an unknown template."""
    await call.rt.templates.get(template)


@action(
    About.TEMPLATE,
    name="remove",
    right=Verb.TEMPLATES,
    question="Remove {}?",
    consequence="Its versions are kept for the jobs that were made from them.",
    destroys=True,
    check=known_template,
)
async def remove_template(call: Call, template: str) -> ActionResult[dict[str, Any]]:
    """Remove a template."""
    await call.rt.templates.remove(template, call.actor)
    return ActionResult("removed", {"name": template, "removed": True})
