"""Redelivery of dead-letter deliveries."""

from __future__ import annotations

from draftsman.actions import maintenance as actions
from draftsman.actions.jobs import job_names
from draftsman.errors import Refused
from draftsman_tui.dashboard.command import JOB, JOBS, CommandGroup, dashboard_command
from draftsman_tui.dashboard.frame.base_screen import BaseScreen
from draftsman_tui.dashboard.frame.perform import act


@dashboard_command(
    "redeliver",
    CommandGroup.DELIVERIES,
    does=actions.redeliver,
    keys="R",
    on={"deliveries"} | JOB,
    footer=True,
)
async def redeliver(screen: BaseScreen, text: str) -> None:
    """Resend dead-letter deliveries."""
    if not screen.deliveries:
        raise Refused("select a delivery first")
    await act(screen, actions.redeliver, screen.deliveries)


@dashboard_command(
    "redeliver-job",
    CommandGroup.DELIVERIES,
    does=actions.redeliver,
    keys="R",
    on=JOBS - JOB - {"deliveries"},
    takes_names=True,
)
async def redeliver_job(screen: BaseScreen, text: str) -> None:
    """Resend all dead-letter deliveries of the job."""
    numbers = screen.jobs()
    seqs = [seq for number in numbers for seq in await screen.rt.outbox.dead_letters(number)]
    if not seqs:
        raise Refused(f"{job_names(numbers)}: no dead-letter deliveries")
    await act(screen, actions.redeliver, seqs)


@dashboard_command("redeliver-dead", CommandGroup.DELIVERIES, does=actions.redeliver)
async def redeliver_dead(screen: BaseScreen, text: str) -> None:
    """Resend all dead-letter deliveries."""
    seqs = await screen.rt.outbox.dead_letters()
    if not seqs:
        raise Refused("no dead-letter deliveries")
    await act(screen, actions.redeliver, seqs)
