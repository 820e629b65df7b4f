"""The `move` command, and the list of queued jobs in the order of the claim."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from draftsman.actions import jobs as actions
from draftsman.entities.filter_values import unknown_value
from draftsman.entities.jobs import QUEUED_JOBS, QueuedRow
from draftsman.entities.queues import condition_text, worker_text
from draftsman.errors import UsageError
from draftsman.ids import JobRef
from draftsman_tui.cli.app import App, command, number_of
from draftsman_tui.cli.lists import print_list, rows_to_read
from draftsman_tui.cli.perform import act
from draftsman_tui.terminal import params

if TYPE_CHECKING:
    from draftsman.queues.service.queues import Place

MAX_HELD: Final = 3
"""Queues with held jobs that are listed by name."""


@command(
    "move",
    section="Control of jobs",
    examples=(
        "draftsman jobs --queued",
        "draftsman move D-142 --top",
        "draftsman move D-142 --before D-7",
        "draftsman move D-142 --after D-7",
    ),
    does=(actions.move,),
)
@click.argument("job", type=params.JOB)
@click.option("--top", is_flag=True, help="To the start of its queue.")
@click.option("--bottom", is_flag=True, help="To the end of its queue.")
@click.option("--before", type=params.JOB, help="Before this job.")
@click.option("--after", type=params.JOB, help="After this job.")
async def move(
    app: App, job: JobRef, top: bool, bottom: bool, before: JobRef | None, after: JobRef | None
) -> None:
    """Move a queued job in its queue.

    The job takes the priority of the job next to which it is moved.
    """
    chosen: dict[Place, JobRef | bool | None] = {
        "top": top,
        "bottom": bottom,
        "before": before,
        "after": after,
    }
    places = [place for place, value in chosen.items() if value]
    if len(places) != 1:
        raise UsageError("specify one of --top, --bottom, --before JOB and --after JOB")
    (place,) = places
    async with app.runtime() as rt:
        number = await number_of(rt, job)
        await act(app, rt, actions.move, number, place=place, anchor=before or after)


async def print_queued(app: App, limit: int, queue: str | None) -> None:
    """Print the jobs in the order of the claim, then those that wait for something else."""
    most = rows_to_read(app, limit)
    async with app.runtime(read_only=True) as rt:
        queued = await rt.queues.order(most, queue)
        waiting = await rt.queues.held(most, queue)
        summaries = await rt.queues.all()
        is_empty = not queued and not waiting
        unknown = await unknown_value(rt, {"queue": queue}) if is_empty else ""
    conditions = [
        *(QueuedRow(job, worker_text(job.hold, job.queue, job.type)) for job in queued),
        *(QueuedRow(job, condition_text(job.hold or "", job.held_by)) for job in waiting),
    ]
    if conditions or app.json or app.counts:
        print_list(app, QUEUED_JOBS, conditions, unknown=unknown, limit=limit)
    elif unknown:
        app.out.info(unknown)
    if app.json or app.counts or unknown:
        return
    if queue is not None and queue not in {summary.name for summary in summaries}:
        app.out.info(f"no job waits in the queue {queue!r}; for the queues: draftsman queues")
    elif not queued:
        app.out.info(QUEUED_JOBS.empty)
    held = [item for item in summaries if item.held and queue in (None, item.name)]
    for summary in held[:MAX_HELD]:
        plus = "+" if summary.capped else ""
        app.out.info(f"{summary.held:,}{plus} held in the queue {summary.name}; draftsman queues")
    if others := held[MAX_HELD:]:
        jobs = sum(summary.held for summary in others)
        app.out.info(f"{jobs:,} held in {len(others):,} other queues; draftsman queues")
