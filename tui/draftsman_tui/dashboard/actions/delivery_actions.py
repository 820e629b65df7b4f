"""Dead deliveries, sent again: those that are chosen, those of jobs, or all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from draftsman.errors import Refused
from draftsman.services.deliveries.outbox import MAX_DEAD
from draftsman_tui.dashboard.actions.bulk import job_names
from draftsman_tui.dashboard.dialogs.confirm_dialog import ConfirmDialog

if TYPE_CHECKING:
    from draftsman_tui.dashboard.screens.base import BaseScreen


async def redeliver(desk: BaseScreen, text: str) -> None:
    """Send the chosen deliveries again."""
    if not desk.deliveries:
        raise Refused("choose a delivery first")
    await _send(desk, desk.deliveries)


async def redeliver_job(desk: BaseScreen, text: str) -> None:
    """Send all dead deliveries of the chosen jobs again."""
    numbers = desk.jobs()
    seqs = [seq for number in numbers for seq in await desk.rt.outbox.dead(number)]
    if not seqs:
        raise Refused(f"no delivery of {job_names(numbers)} is dead")
    await _send(desk, seqs)


async def redeliver_dead(desk: BaseScreen, text: str) -> None:
    """Send all dead deliveries again."""
    seqs = await desk.rt.outbox.dead()
    if not seqs:
        raise Refused("no delivery is dead")
    await _send(desk, seqs, "The oldest; the rest with the next." if len(seqs) == MAX_DEAD else "")


async def _send(desk: BaseScreen, seqs: Sequence[int], note: str = "") -> None:
    question = f"Send {len(seqs):,} deliveries again?"
    if len(seqs) > 1 and not await desk.ask(ConfirmDialog(question, note)):
        return
    revived = await desk.rt.outbox.redeliver(seqs, desk.actor)
    desk.show_message(f"{len(revived):,} to be sent again")
