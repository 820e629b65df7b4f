"""Commands of queues: pause, resume, and the end of a reservation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from draftsman.errors import Refused
from draftsman.ids import job_name, pause_name
from draftsman_tui.dashboard.dialogs.choice_dialog import ChoiceDialog
from draftsman_tui.dashboard.dialogs.confirm_dialog import ConfirmDialog
from draftsman_tui.dashboard.dialogs.prompt_dialog import PromptDialog

if TYPE_CHECKING:
    from draftsman.queues.queue_models import QueueSummary
    from draftsman_tui.dashboard.tables.screen import MainScreen

TYPE: Final = "type:"
"""Prefix of the job type in the arguments of a command."""


async def pause(screen: MainScreen, text: str) -> None:
    """Pause the queue, or with `type:TYPE` a job type in it; asks for the reason."""
    queue = _queue(screen)
    type, reason = _split(text)
    name = pause_name(queue.name, type)
    reason = reason or await screen.ask(PromptDialog(f"Why pause the {name}?", "")) or ""
    if reason.strip():
        await screen.rt.queues.pause(queue.name, screen.actor, reason, type)
        screen.show_message(f"Paused the {name}; running jobs continue")


async def resume(screen: MainScreen, text: str) -> None:
    """Resume the queue, or a job type in it; asks which if several are paused."""
    queue = _queue(screen)
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
    await screen.rt.queues.resume(queue.name, screen.actor, type)
    screen.show_message(f"Resumed the {pause_name(queue.name, type)}")


async def release(screen: MainScreen, text: str) -> None:
    """End the reservation of the queue, after a confirmation."""
    queue = _queue(screen)
    reservations = await screen.rt.reservations.all()
    reservation = next((item for item in reservations if item.queue == queue.name), None)
    if reservation is None:
        raise Refused(f"the queue {queue.name!r} is not reserved")
    note = f"It is reserved for {job_name(reservation.job)}, which keeps its place."
    title = f"End the reservation of the queue {queue.name}?"
    if await screen.ask(ConfirmDialog(title, note)):
        await screen.rt.queues.release_reservation(queue.name, screen.actor)
        screen.show_message(f"The queue {queue.name} is no longer reserved")


def _queue(screen: MainScreen) -> QueueSummary:
    queue = cast("QueueSummary | None", screen.table.row)
    if queue is None:
        raise Refused("choose a queue first")
    return queue


def _split(text: str) -> tuple[str | None, str]:
    """Split the arguments into the job type, if any, and the rest."""
    first, _, rest = text.strip().partition(" ")
    if first.startswith(TYPE) and len(first) > len(TYPE):
        return first.removeprefix(TYPE), rest.strip()
    return None, text.strip()
