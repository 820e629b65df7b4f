"""Redelivery of dead-letter deliveries."""

from __future__ import annotations

from collections.abc import Sequence

from draftsman.actions.jobs import job_names
from draftsman.actions.maintenance import deliveries
from draftsman.actions.maintenance import redeliver as redeliver_action
from draftsman.deliveries.service.outbox import MAX_DEAD
from draftsman.errors import Refused
from draftsman_tui.dashboard.command import JOB, JOBS, CommandGroup, dashboard_command
from draftsman_tui.dashboard.frame.base_screen import BaseScreen
from draftsman_tui.dashboard.frame.perform import asked, call_of, perform


@dashboard_command(
    "redeliver",
    CommandGroup.DELIVERIES,
    does=redeliver_action,
    keys="R",
    on={"deliveries"} | JOB,
    footer=True,
)
async def redeliver(screen: BaseScreen, text: str) -> None:
    """Resend dead-letter deliveries."""
    if not screen.deliveries:
        raise Refused("select a delivery first")
    await _send(screen, screen.deliveries)


@dashboard_command(
    "redeliver-job",
    CommandGroup.DELIVERIES,
    does=redeliver_action,
    keys="R",
    on=JOBS - JOB - {"deliveries"},
)
async def redeliver_job(screen: BaseScreen, text: str) -> None:
    """Resend all dead-letter deliveries of the job."""
    numbers = screen.jobs()
    seqs = [seq for number in numbers for seq in await screen.rt.outbox.dead_letters(number)]
    if not seqs:
        raise Refused(f"{job_names(numbers)}: no dead-letter deliveries")
    await _send(screen, seqs)


@dashboard_command("redeliver-dead", CommandGroup.DELIVERIES, does=redeliver_action)
async def redeliver_dead(screen: BaseScreen, text: str) -> None:
    """Resend all dead-letter deliveries."""
    seqs = await screen.rt.outbox.dead_letters()
    if not seqs:
        raise Refused("no dead-letter deliveries")
    await _send(
        screen,
        seqs,
        "The oldest first; run the command again for the rest." if len(seqs) == MAX_DEAD else "",
    )


async def _send(screen: BaseScreen, seqs: Sequence[int], note: str = "") -> None:
    question = redeliver_action.question.format(deliveries(len(seqs)))
    if len(seqs) == 1 or await asked(screen, question, note or redeliver_action.consequence):
        await perform(screen, redeliver_action(call_of(screen), seqs))
