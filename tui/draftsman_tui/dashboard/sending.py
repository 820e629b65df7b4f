"""Dead deliveries, sent again: those that are chosen, those of jobs, or all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from draftsman.errors import Refused
from draftsman.services.outbox import MANY
from draftsman_tui.dashboard.doing import names
from draftsman_tui.dashboard.screens.confirm import Confirm

if TYPE_CHECKING:
    from draftsman_tui.dashboard.screens.desk import Desk


async def redeliver(desk: Desk, text: str) -> None:
    """Send the chosen deliveries again."""
    if not desk.deliveries:
        raise Refused("choose a delivery first")
    await _send(desk, desk.deliveries)


async def redeliver_job(desk: Desk, text: str) -> None:
    """Send all dead deliveries of the chosen jobs again."""
    numbers = desk.jobs()
    seqs = [seq for number in numbers for seq in await desk.rt.outbox.dead(number)]
    if not seqs:
        raise Refused(f"no delivery of {names(numbers)} is dead")
    await _send(desk, seqs)


async def redeliver_dead(desk: Desk, text: str) -> None:
    """Send all dead deliveries again."""
    seqs = await desk.rt.outbox.dead()
    if not seqs:
        raise Refused("no delivery is dead")
    await _send(desk, seqs, "The oldest; the rest with the next." if len(seqs) == MANY else "")


async def _send(desk: Desk, seqs: Sequence[int], note: str = "") -> None:
    question = f"Send {len(seqs):,} deliveries again?"
    if len(seqs) > 1 and not await desk.ask(Confirm(question, note)):
        return
    revived = await desk.rt.outbox.redeliver(seqs, desk.actor)
    desk.say(f"{len(revived):,} to be sent again")
