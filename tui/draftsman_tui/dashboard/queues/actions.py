"""Commands of queues: pause, resume, end of a reservation, and the order of queued jobs."""

from __future__ import annotations

from typing import Final

from draftsman.actions import jobs
from draftsman.actions import queues as actions
from draftsman.errors import Refused, UsageError
from draftsman.ids import job_name, parse_job, pause_name
from draftsman.queues.queue_models import QueueSummary
from draftsman.queues.service.queues import Place
from draftsman_tui.dashboard.command import ORDERED, CommandGroup, dashboard_command
from draftsman_tui.dashboard.dialogs.simple_dialogs import ChoiceDialog, PromptDialog
from draftsman_tui.dashboard.frame.base_screen import BaseScreen
from draftsman_tui.dashboard.frame.perform import (
    call_of,
    confirmed_about,
    job_command,
    perform,
)
from draftsman_tui.dashboard.tables.screen import MainScreen

TYPE: Final = "type:"
"""Prefix of the job type in the arguments of a command."""


@dashboard_command(
    "pause",
    CommandGroup.ADMINISTRATION,
    does=actions.pause,
    keys="p",
    on={"queues"},
    footer=True,
)
async def pause(screen: MainScreen, text: str) -> None:
    """Pause the queue, or a job type in it.

    `type:TYPE` in `text` names a job type; asks for the reason.
    """
    queue: QueueSummary = screen.chosen("queue")
    type, reason = _split(text)
    name = pause_name(queue.name, type)
    reason = reason or await screen.ask(PromptDialog(actions.pause.prompt.format(name), "")) or ""
    if reason.strip():
        await perform(screen, actions.pause(call_of(screen), queue.name, reason, type))


@dashboard_command(
    "unpause",
    CommandGroup.ADMINISTRATION,
    does=actions.resume,
    keys="U",
    on={"queues"},
    footer=True,
)
async def resume(screen: MainScreen, text: str) -> None:
    """Resume the queue, or a job type in it.

    Asks which if several are paused.
    """
    queue: QueueSummary = screen.chosen("queue")
    type, _ = _split(text)
    if type is None and (pauses := await screen.rt.queues.pauses(queue.name)):
        names = [(pause.name, pause.type or "") for pause in pauses]
        if len(names) > 1:
            choice = await screen.ask(ChoiceDialog("Resume what?", names))
            if choice is None:
                return
            type = choice or None
        else:
            type = pauses[0].type
    await perform(screen, actions.resume(call_of(screen), queue.name, type))


@dashboard_command("unreserve", CommandGroup.ADMINISTRATION, does=actions.release, on={"queues"})
async def release(screen: MainScreen, text: str) -> None:
    """End the reservation of the queue.

    Asks for a confirmation.
    """
    queue: QueueSummary = screen.chosen("queue")
    reservations = await screen.rt.reservations.all()
    reservation = next(
        (reserved for reserved in reservations if reserved.queue == queue.name), None
    )
    if reservation is None:
        raise Refused(f"the queue {queue.name!r} is not reserved")
    note = actions.reserved(reservation)
    if await confirmed_about(screen, actions.release, repr(queue.name), note):
        await perform(screen, actions.release(call_of(screen), queue.name))


def _split(text: str) -> tuple[str | None, str]:
    """Split the arguments into the job type, if any, and the reason."""
    first, _, reason = text.strip().partition(" ")
    if first.startswith(TYPE) and len(first) > len(TYPE):
        return first.removeprefix(TYPE), reason.strip()
    return None, text.strip()


ENDS: Final[dict[str, Place]] = {"top": "top", "bottom": "bottom"}
SIDES: Final[dict[str, Place]] = {"before": "before", "after": "after"}
USAGE: Final = "move: enter top, bottom, before D-2 or after D-2"


@dashboard_command(
    "move",
    CommandGroup.JOBS,
    does=jobs.move,
    keys="M",
    on=ORDERED,
)
async def move(screen: BaseScreen, text: str) -> None:
    """Move a queued job in its queue.

    `text` is `top`, `bottom`, `before D-2` or `after D-2`.
    """
    number = screen.jobs()[0]
    if not text:
        choices = [
            ("to the top of its queue", "top"),
            ("to the bottom of its queue", "bottom"),
            ("before another job …", "before"),
            ("after another job …", "after"),
        ]
        text = await screen.ask(ChoiceDialog(f"Move {job_name(number)}?", choices)) or ""
        if text in SIDES:
            other = await screen.ask(PromptDialog(f"Move {job_name(number)} {text} which job?", ""))
            text = f"{text} {other}" if other else ""
        if not text:
            return
    word, _, name = text.strip().partition(" ")
    call = call_of(screen)
    if word in ENDS and not name:
        await perform(screen, jobs.move(call, number, ENDS[word]))
    elif word in SIDES and name.strip():
        anchor = await screen.rt.read_model.resolve(parse_job(name.strip()))
        await perform(screen, jobs.move(call, number, SIDES[word], anchor))
    else:
        raise UsageError(USAGE)


job_command("priority", jobs.priority, keys="P", on=ORDERED)
