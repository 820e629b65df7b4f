"""`deliveries` and `redeliver`: what people were told, and sending again what died."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from draftsman.domain.messages.delivery import DeliveryStatus
from draftsman.errors import Refused, UsageError
from draftsman_tui.cli import prompts
from draftsman_tui.cli.app import App, command, number_of
from draftsman_tui.common import params
from draftsman_tui.common.delivery_text import delivery_cells

if TYPE_CHECKING:
    from draftsman.domain.ids import JobRef

_SEVERAL = 5
"""Deliveries from which sending them all again is asked about first."""


@command(
    "deliveries",
    examples=(
        "draftsman deliveries",
        "draftsman deliveries --job D-142",
        "draftsman deliveries --status dead --json",
    ),
)
@click.option("--job", type=params.JOB, help="Of this job only.")
@click.option(
    "--status",
    type=click.Choice([str(one) for one in DeliveryStatus]),
    multiple=True,
    help="With this status; repeatable.",
)
@click.option(
    "--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="How many."
)
async def deliveries(app: App, job: JobRef | None, status: tuple[str, ...], limit: int) -> None:
    """List what people were told.

    The newest comes first. One that is unknown may have arrived: it is looked for before it is
    repeated. One that is superseded had nothing new to say any more. One that is dead was given
    up; see: redeliver.
    """
    wanted = [DeliveryStatus(one) for one in status] or None
    async with app.runtime(read_only=True) as rt:
        number = None if job is None else await number_of(rt, job)
        found = await rt.outbox.all(number, wanted, limit)
        targets = [] if number is None else await rt.outbox.targets(number)
    if app.json:
        app.out.document(found)
    elif found:
        heads = ("ID", "JOB", "KIND", "TO", "STATUS", "TRIES", "WHEN", "")
        rows = [delivery_cells(one) for one in found]
        app.out.table(heads, rows, flexible=7, right=(0, 5))
    elif status:
        app.out.info(f"no delivery is {' or '.join(status)}")
    elif number is not None and not targets:
        app.out.info(f"D-{number} tells nobody; to be told: draftsman submit --notify log …")
    else:
        app.out.info("nobody was told anything; to be told: draftsman submit --notify log …")


@command(
    "redeliver",
    examples=(
        "draftsman redeliver 17 18",
        "draftsman redeliver --job D-142",
        "draftsman redeliver --dead --yes",
    ),
)
@click.argument("ids", metavar="[ID]...", nargs=-1, type=click.IntRange(1, 2**63 - 1))
@click.option("--job", type=params.JOB, help="All of this job that are dead.")
@click.option("--dead", is_flag=True, help="All that are dead, the oldest thousand.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
async def redeliver(
    app: App, ids: tuple[int, ...], job: JobRef | None, dead: bool, yes: bool
) -> None:
    """Send dead deliveries again.

    Each is looked for first where it may have arrived, and has all its tries again.
    """
    if sum((bool(ids), job is not None, dead)) != 1:
        raise UsageError("say which: redeliver ID…, --job D-142, or --dead")
    async with app.runtime() as rt:
        seqs = list(dict.fromkeys(ids))
        if not seqs:
            number = None if job is None else await number_of(rt, job)
            seqs = await rt.outbox.dead(number)
        if len(seqs) >= _SEVERAL and not yes:
            if not app.out.interactive:
                raise Refused(f"that would send {len(seqs)} deliveries again; to do so give --yes")
            prompts.confirm(f"send {len(seqs)} dead deliveries again?")
        revived = await rt.outbox.redeliver(seqs, await rt.actor())
    if app.json:
        app.out.document(revived)
    elif revived:
        told = ", ".join(map(str, revived[:10])) + (", …" if len(revived) > 10 else "")
        app.out.print(f"{len(revived)} to be sent again: {told}")
    else:
        app.out.info("none is dead")
