"""The `deliveries` and `redeliver` commands."""

from __future__ import annotations

import click

from draftsman.actions.maintenance import redeliver as redeliver_action
from draftsman.deliveries.delivery import DeliveryStatus
from draftsman.entities.deliveries import DELIVERIES
from draftsman.errors import UsageError
from draftsman.ids import JobRef, job_name
from draftsman.jobs.details.sections.deliveries import unserved_texts
from draftsman.text import humanize
from draftsman_tui.cli.app import App, command, number_of
from draftsman_tui.cli.lists import print_list, rows_to_read
from draftsman_tui.cli.perform import act
from draftsman_tui.terminal import params


@command(
    "deliveries",
    section="Jobs",
    examples=(
        "draftsman deliveries",
        "draftsman deliveries --job D-142",
        "draftsman deliveries --status dead_letter --json",
    ),
    lists=DELIVERIES,
)
@click.option("--job", type=params.JOB_OF, help="Filter by job.")
@click.option(
    "--status",
    type=click.Choice([str(value) for value in DeliveryStatus]),
    multiple=True,
    help="Filter by status; repeatable.",
)
@params.limit_option("deliveries")
async def deliveries(app: App, job: JobRef | None, status: tuple[str, ...], limit: int) -> None:
    """List deliveries, newest first.

    unconfirmed: the message may have arrived; the channel is checked before it is sent again.
    superseded: a newer message replaced it. dead_letter: every attempt failed; see
    draftsman redeliver.
    """
    statuses = [DeliveryStatus(value) for value in status] or None
    async with app.runtime(read_only=True) as rt:
        number = None if job is None else await number_of(rt, job)
        selected = await rt.outbox.all(number, statuses, rows_to_read(app, limit))
        targets = [] if number is None else await rt.outbox.targets(number)
        unserved = await rt.outbox.unserved()
    empty = ""
    if status:
        empty = f"no {humanize(' or '.join(status))} deliveries"
    elif number is not None and not targets:
        empty = f"{job_name(number)} has no targets; {DELIVERIES.hint}"
    print_list(app, DELIVERIES, selected, empty, limit=limit)
    for text in () if app.json or app.counts else unserved_texts(selected, unserved):
        app.out.info(text)


@command(
    "redeliver",
    section="Jobs",
    examples=(
        "draftsman redeliver 17 18",
        "draftsman redeliver --job D-142",
        "draftsman redeliver --dead-letters --yes",
    ),
    does=(redeliver_action,),
)
@click.argument("ids", metavar="[ID]...", nargs=-1, type=params.ROW)
@click.option("--job", type=params.JOB, help="All dead-letter deliveries of this job.")
@click.option(
    "--dead-letters", is_flag=True, help="All dead-letter deliveries, up to the oldest 1000."
)
async def redeliver(
    app: App, ids: tuple[int, ...], job: JobRef | None, dead_letters: bool, yes: bool
) -> None:
    """Retry dead-letter deliveries.

    A delivery that may have arrived is looked up in its channel first. The attempts start over.
    """
    if sum((bool(ids), job is not None, dead_letters)) != 1:
        raise UsageError("specify one of: ID…, --job D-142 or --dead-letters")
    async with app.runtime() as rt:
        seqs = list(dict.fromkeys(ids))
        if not seqs:
            number = None if job is None else await number_of(rt, job)
            seqs = await rt.outbox.dead_letters(number)
        await act(app, rt, redeliver_action, seqs, yes=yes)
