"""Actions on queues."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from draftsman.actions.action import (
    About,
    ActionResult,
    Arguments,
    Call,
    RefusedWithData,
    Subject,
    Surface,
    action,
)
from draftsman.errors import CommandHint, UsageError
from draftsman.formats import times
from draftsman.formats.amounts import counted
from draftsman.ids import account_name, job_name, pause_name
from draftsman.people.policy import Verb

if TYPE_CHECKING:
    from collections.abc import Sequence

    from draftsman.queues.service.queues import DrainProgress

TYPE: Final = "type:"
"""Prefix of a job type in typed arguments."""
DRAIN_REASON: Final = "draining"
"""Reason of the pause of a drain, unless it is given."""
SHOWN_JOBS: Final = 5
"""Jobs that a line of progress names."""


def parse_type(text: str) -> tuple[str | None, str]:
    """Parse `type:TYPE`, if it is there, and the text after it."""
    first, _, rest = text.strip().partition(" ")
    if first.startswith(TYPE) and len(first) > len(TYPE):
        return first.removeprefix(TYPE), rest.strip()
    return None, text.strip()


def parse_pause(text: str) -> dict[str, str | None]:
    """Parse `type:TYPE REASON`; raises UsageError without a reason."""
    type, reason = parse_type(text)
    if not reason:
        raise UsageError("a reason is required: pause [type:TYPE] REASON")
    return {"type": type, "reason": reason}


async def require_known(call: Call, queue: str, type: str | None) -> None:
    """Raise NotFound for an unknown queue, and UsageError for an unknown type."""
    await call.rt.queues.require_known(queue, type, call.actor, call.rt.request_checks)


@action(
    About.QUEUE,
    right=Verb.QUEUES,
    takes=Arguments("[type:TYPE] REASON", parse_pause, "Why pause the {}?", "disk is full"),
    undo="resume",
)
async def pause(
    call: Call, queue: str, reason: str, type: str | None = None, *, unchecked: bool = False
) -> ActionResult[int]:
    """Pause a queue, or a job type in it."""
    if not unchecked:
        await require_known(call, queue, type)
    held = await call.rt.queues.pause(queue, call.actor, reason, type)
    option = f" --type {type}" if type else ""
    hint = CommandHint("queues resume", f"{queue}{option}", lead="to resume it")
    data = {"queue": queue, "type": type, "paused": True, "held": held}
    name = pause_name(queue, type)
    return ActionResult("paused", held, ("; running jobs continue",), hint, data, name)


async def paused(call: Call, queue: str) -> Sequence[tuple[str, str]]:
    """Return what of a queue is paused."""
    pauses = await call.rt.queues.pauses(queue)
    return [(pause.name, f"{TYPE}{pause.type}" if pause.type else "") for pause in pauses]


@action(
    About.QUEUE,
    right=Verb.QUEUES,
    takes=Arguments(
        "[type:TYPE]",
        lambda text: {"type": parse_type(text)[0]},
        "Resume what?",
        choices=paused,
        asks_single=False,
    ),
    undo="pause",
)
async def resume(call: Call, queue: str, type: str | None = None) -> ActionResult[int]:
    """Resume a paused queue, or a paused job type in it."""
    released = await call.rt.queues.resume(queue, call.actor, type)
    others = [pause for pause in await call.rt.queues.pauses(queue) if pause.type != type]
    detail = tuple(f"; the {pause.name} is still paused: {pause.reason}" for pause in others)
    data = {"queue": queue, "type": type, "paused": False, "released": released}
    name = pause_name(queue, type)
    return ActionResult("resumed", released, detail, data=data, subject=name)


@action(About.QUEUE, right=Verb.QUEUES, undo="resume", surfaces={Surface.COMMANDS})
async def drain(
    call: Call,
    queue: str,
    reason: str = DRAIN_REASON,
    type: str | None = None,
    *,
    seconds: float | None = None,
    unchecked: bool = False,
) -> ActionResult[bool]:
    """Pause a queue, and wait until no job of it is running."""
    if not unchecked:
        await require_known(call, queue, type)
    progress: DrainProgress | None = None
    text = "its jobs were not counted"
    try:
        async with asyncio.timeout(seconds):
            async for progress in call.rt.queues.drain(queue, call.actor, reason, type):
                if (new := progress_text(progress)) != text and not progress.finished:
                    call.report(f"{queue}: {new}")
                text = new
    except TimeoutError:
        pass
    is_drained = progress is not None and progress.finished
    data: dict[str, Any] = {"queue": queue, "type": type, "drained": is_drained}
    data |= {"running": progress.running if progress is not None else []}
    name = pause_name(queue, type)
    if not is_drained:
        after = times.span(seconds or 0)
        raise RefusedWithData(f"the {name} is paused, but not drained after {after}: {text}", data)
    detail = ("; it stays paused, and none of its jobs runs",)
    return ActionResult("drained", True, detail, data=data, subject=name)


def progress_text(progress: DrainProgress) -> str:
    """Return which jobs still run."""
    if not progress.running:
        return f"waiting for {progress.claims} claims that began before the pause"
    names = ", ".join(map(job_name, progress.running[:SHOWN_JOBS]))
    ellipsis = ", …" if len(progress.running) > SHOWN_JOBS else ""
    return f"{counted(len(progress.running), 'job')} still running: {names}{ellipsis}"


async def reserved(call: Call, queue: str, **_: object) -> Subject:
    """Return for which job a queue is reserved, and what becomes of it."""
    for item in await call.rt.reservations.all():
        if item.queue == queue:
            job = job_name(item.job)
            by = account_name(item.actor)
            return Subject(note=f"{by} reserved it for {job}, which keeps its place.")
    return Subject(needs_question=False)  # the service refuses it


@action(
    About.QUEUE,
    right=Verb.RESERVE,
    question="End the reservation of the {}?",
    consequence="The job that reserved it keeps its place.",
    destroys=True,
    guarded=True,
    check=reserved,
)
async def release(call: Call, queue: str) -> ActionResult[int]:
    """End the reservation of a queue."""
    job = await call.rt.queues.release_reservation(queue, call.actor)
    detail = (f"; it was reserved for {job_name(job)}, which keeps its place",)
    return ActionResult(
        "released", job, detail, data={"queue": queue, "released": True, "job": job}
    )
