"""Actions on queues."""

from __future__ import annotations

from typing import TYPE_CHECKING

from draftsman.actions.action import About, ActionResult, Call, action
from draftsman.actions.jobs import TERMINALS
from draftsman.errors import CommandHint
from draftsman.ids import actor_name, job_name, pause_name
from draftsman.people.policy import Verb

if TYPE_CHECKING:
    from draftsman.queues.queue_models import QueueReservation


@action(
    About.QUEUE,
    right=Verb.QUEUES,
    arguments="[type:TYPE] REASON",
    prompt="Why pause the {}?",
    undo="resume",
    surfaces=TERMINALS,
)
async def pause(call: Call, queue: str, reason: str, type: str | None = None) -> ActionResult[int]:
    """Pause a queue, or a job type in it."""
    held = await call.rt.queues.pause(queue, call.actor, reason, type)
    option = f" --type {type}" if type else ""
    hint = CommandHint("queues resume", f"{queue}{option}", lead="to resume it")
    detail = ("; running jobs continue",)
    return ActionResult(pause_name(queue, type), "paused", held, detail, hint)


@action(About.QUEUE, right=Verb.QUEUES, arguments="[type:TYPE]", undo="pause", surfaces=TERMINALS)
async def resume(call: Call, queue: str, type: str | None = None) -> ActionResult[int]:
    """Resume a paused queue, or a paused job type in it."""
    released = await call.rt.queues.resume(queue, call.actor, type)
    others = [pause for pause in await call.rt.queues.pauses(queue) if pause.type != type]
    detail = tuple(f"; the {pause.name} is still paused: {pause.reason}" for pause in others)
    return ActionResult(pause_name(queue, type), "resumed", released, detail)


@action(
    About.QUEUE,
    right=Verb.RESERVE,
    question="End the reservation of the queue {}?",
    consequence="The job that reserved it keeps its place.",
    destroys=True,
    guarded=True,
    surfaces=TERMINALS,
)
async def release(call: Call, queue: str) -> ActionResult[int]:
    """End the reservation of a queue."""
    job = await call.rt.queues.release_reservation(queue, call.actor)
    detail = (f"; it was reserved for {job_name(job)}, which keeps its place",)
    return ActionResult(f"queue {queue!r}", "released", job, detail)


def reserved(reservation: QueueReservation) -> str:
    """Return for which job a queue is reserved, and what becomes of it."""
    job = job_name(reservation.job)
    return f"{actor_name(reservation.actor)} reserved it for {job}, which keeps its place."
