"""The `cancel`, `dismiss`, `undismiss`, `pause`, `resume`, `priority` and `tell` commands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from draftsman.actions import jobs as actions
from draftsman.errors import UsageError
from draftsman.formats import times
from draftsman.ids import job_name
from draftsman.jobs.job import FAILURES, TERMINAL, Status
from draftsman_tui.cli import prompts
from draftsman_tui.cli.app import App, command, number_of
from draftsman_tui.cli.jobs.selection import (
    confirm_selected,
    filter_options,
    filters_of,
    finished_jobs,
    not_settled,
)
from draftsman_tui.cli.perform import act, numbers_of, perform_each
from draftsman_tui.terminal import params

if TYPE_CHECKING:
    from draftsman.actions.action import Action
    from draftsman.ids import JobRef
    from draftsman.jobs.job_summary import FinishedJob, JobSummary
    from draftsman.runtime import Runtime


@command(
    "pause",
    section="Control of jobs",
    examples=(
        "draftsman pause D-142 --reason 'the API is down until noon'",
        "draftsman pause D-142 D-143 --reason 'freeze'",
    ),
    does=(actions.pause,),
)
@params.jobs_argument(required=True)
@click.option("--reason", type=params.TEXT, required=True, help="Reason, which `why` shows.")
async def pause(app: App, jobs: tuple[JobRef, ...], reason: str) -> None:
    """Pause jobs.

    A running job is parked at its checkpoint, and its slot is free. A waiting job still takes
    answers, messages and a cancel, and no worker claims it until draftsman resume.
    """
    await _perform(app, actions.pause, jobs, reason=reason)


@command(
    "resume",
    section="Control of jobs",
    examples=("draftsman resume D-142",),
    does=(actions.resume,),
)
@params.jobs_argument(required=True)
async def resume(app: App, jobs: tuple[JobRef, ...]) -> None:
    """Continue paused jobs.

    A job continues from its checkpoint when a worker claims it, or after the answer that it waits
    for.
    """
    await _perform(app, actions.resume, jobs)


@command(
    "priority",
    section="Control of jobs",
    examples=("draftsman priority D-142 5", "draftsman priority D-142 D-143 -- -5"),
    does=(actions.priority,),
)
@params.jobs_argument(required=True)
@click.argument("priority", type=params.PRIORITY, metavar="NUMBER")
async def priority(app: App, jobs: tuple[JobRef, ...], priority: int) -> None:
    """Change the priority of jobs that have not started.

    The jobs must be queued or scheduled. Higher numbers run first, from -1000 to 1000; the
    default is 0.
    """
    await _perform(app, actions.priority, jobs, priority=priority)


async def _perform(
    app: App, action: Action[int, ..., Any], jobs: tuple[JobRef, ...], **arguments: Any
) -> None:
    async with app.runtime() as rt:
        numbers, unknown = await numbers_of(app, rt, jobs)
        await perform_each(app, rt, action, numbers, name=job_name, unknown=unknown, **arguments)


@command(
    "tell",
    section="Control of jobs",
    examples=(
        "draftsman tell D-142 'use the v2 API'",
        "draftsman tell D-142 --key review-7 'the tests are in tests/api'",
        "draftsman tell D-142 - < notes.md",
    ),
    does=(actions.tell,),
)
@click.argument("job", type=params.JOB)
@click.argument("message", nargs=-1, type=params.TEXT)
@click.option(
    "--key",
    type=params.TEXT,
    help="Idempotency key: sent once; refused with another text.",
)
async def tell(app: App, job: JobRef, message: tuple[str, ...], key: str | None) -> None:
    """Send a message to the agent of a job.

    MESSAGE - reads the text from stdin. A running agent gets the message between two turns; without
    one, the next run gets it. draftsman show lists the messages, and which are delivered.
    """
    text = params.read_stdin() if message == ("-",) else " ".join(message)
    if not text.strip():
        raise UsageError("MESSAGE is required: draftsman tell D-142 'use the v2 API'")
    async with app.runtime() as rt:
        await act(app, rt, actions.tell, await number_of(rt, job), text=text, key=key)


PAGE: Final = 1000
"""Jobs that a query reads."""


async def _matching(
    rt: Runtime, *, mine: bool, since: float | None, until: float | None, **filters: Any
) -> list[JobSummary]:
    """Return all jobs that match, oldest first."""
    oldest, newest = params.period(since, until)
    invoker = (await rt.actor()).voter if mine else None
    jobs: list[JobSummary] = []
    before: int | None = None
    while True:
        page = await rt.read_model.page(
            since=oldest, until=newest, invoker=invoker, before=before, limit=PAGE, **filters
        )
        jobs += page.jobs
        before = page.jobs[-1].number if len(page.jobs) == PAGE else page.scanned_to
        if before is None:
            return jobs[::-1]


@command(
    "dismiss",
    section="Control of jobs",
    examples=(
        "draftsman dismiss D-142 --reason 'fixed upstream'",
        "draftsman dismiss --status failed,dead_letter --type llm_generate --dry-run",
        "draftsman dismiss --status dead_letter --since 7d --reason 'the API was down' --yes",
    ),
    does=(actions.dismiss,),
)
@params.jobs_argument()
@filter_options("Dismiss", "finished within")
@click.option("--reason", type=params.TEXT, help="Reason, which `show` and `why` show.")
@params.yes_option
async def dismiss(
    app: App,
    jobs: tuple[JobRef, ...],
    dry_run: bool,
    reason: str | None,
    yes: bool,
    **options: Any,
) -> None:
    """Take failures out of attention.

    A failed job or a dead letter counts as a failure that needs a person until it is retried or
    dismissed. Its status, its error and its events stay, and it can still be retried. To take a
    dismissal back, use draftsman undismiss.

    With --status, dismisses every matching failure that needs a person, as in draftsman jobs
    --failures, after a confirmation. If interrupted, run the same command again to continue. Exits
    with 1 if a job could not be dismissed.
    """
    every = partial(not_settled, app)
    await _act_on_failures(
        app,
        actions.dismiss,
        jobs,
        every,
        dry_run=dry_run,
        yes=yes,
        filters=options,
        reason=reason or "",
        listing="draftsman jobs --failures",
    )


@command(
    "undismiss",
    section="Control of jobs",
    examples=(
        "draftsman undismiss D-142",
        "draftsman undismiss --status failed,dead_letter --since 1h --dry-run",
    ),
    does=(actions.undismiss,),
)
@params.jobs_argument()
@filter_options("Undismiss", "finished within")
@params.yes_option
async def undismiss(
    app: App, jobs: tuple[JobRef, ...], dry_run: bool, yes: bool, **options: Any
) -> None:
    """Take the dismissal of failures back.

    A failure counts again as one that needs a person, unless it was retried meanwhile.

    With --status, takes the dismissal of every matching job back, after a confirmation. If
    interrupted, run the same command again to continue. Exits with 1 if a job could not be changed.
    """

    def every(matching: Sequence[FinishedJob]) -> list[FinishedJob]:
        return [job for job in matching if job.dismissed]

    await _act_on_failures(
        app,
        actions.undismiss,
        jobs,
        every,
        dry_run=dry_run,
        yes=yes,
        filters=options,
        listing="draftsman jobs --status failed,dead_letter",
    )


async def _act_on_failures(
    app: App,
    action: Action[int, ..., Any],
    jobs: tuple[JobRef, ...],
    every: Callable[[Sequence[FinishedJob]], list[FinishedJob]],
    *,
    filters: dict[str, Any],
    dry_run: bool,
    yes: bool,
    listing: str,
    **arguments: Any,
) -> None:
    """Act on jobs, or on `every` of the failures that match filters."""
    filters = filters_of(jobs, filters, Status.DEAD_LETTER, dry_run=dry_run)
    if others := [value for value in filters["statuses"] if value not in FAILURES]:
        failures = ", ".join(sorted(FAILURES))
        raise UsageError(f"a job that is {others[0]} is no failure; choose: {failures}")
    async with app.runtime(read_only=dry_run) as rt:
        numbers, unknown = await numbers_of(app, rt, jobs)
        if not jobs:
            numbers = await confirm_selected(
                app,
                rt,
                action,
                every(await finished_jobs(rt, filters)),
                filters=filters,
                done=f"{action.name}ed",
                empty=f"no failures to {action.name}; to list them: {listing}",
                dry_run=dry_run,
                yes=yes,
            )
            if not numbers:
                return
        await perform_each(
            app,
            rt,
            action,
            numbers,
            name=job_name,
            unknown=unknown,
            as_list=not jobs,
            **arguments,
        )


@command(
    "cancel",
    section="Control of jobs",
    examples=(
        "draftsman cancel D-142 --reason 'not needed any more'",
        "draftsman cancel D-140 D-141 --yes",
        "draftsman cancel D-142 --tree",
        "draftsman cancel --status queued,scheduled --type report:weekly --dry-run",
        "draftsman cancel --status waiting --tag nightly --since 1d",
    ),
    does=(actions.cancel, actions.cancel_tree),
)
@params.jobs_argument()
@filter_options("Cancel", "created within")
@click.option("--tree", is_flag=True, help="Cancel all jobs that wait for it as well.")
@click.option("--reason", type=params.TEXT, help="Reason, recorded in the event history.")
@click.option("--force", is_flag=True, help="Cancel without waiting for the worker.")
async def cancel(
    app: App,
    jobs: tuple[JobRef, ...],
    tree: bool,
    dry_run: bool,
    reason: str | None,
    force: bool,
    yes: bool,
    **options: Any,
) -> None:
    """Cancel jobs.

    A running job is asked to stop first. With --force it is canceled immediately, and later writes
    of its worker are rejected.

    Jobs that wait for the success of a canceled job are canceled by the system. With --tree, all
    jobs that wait for it are canceled, directly or not, whatever they wait for.

    With --status, cancels every matching job, after a confirmation. Exits with 1 if a job could not
    be canceled.
    """
    filters = filters_of(jobs, options, Status.QUEUED, dry_run=dry_run)
    if tree and (len(jobs) != 1 or force):
        raise UsageError("--tree takes a single job, and cannot be combined with --force")
    if ended := [value for value in filters["statuses"] if value in TERMINAL]:
        live = ", ".join(value for value in Status if value not in TERMINAL)
        raise UsageError(f"a job that is {ended[0]} cannot be canceled; choose: {live}")
    async with app.runtime(read_only=dry_run) as rt:
        if tree:
            number = await number_of(rt, jobs[0])
            await act(app, rt, actions.cancel_tree, number, reason=reason or "", yes=yes)
            return
        numbers, unknown = await numbers_of(app, rt, jobs)
        if numbers and app.out.interactive and not yes:
            selection = await actions.select(rt, actions.cancel, numbers)
            prompts.confirm(f"{selection.question} {selection.note()}")
        if not jobs:
            numbers = await confirm_selected(
                app,
                rt,
                actions.cancel,
                await _matching(rt, **filters),
                {"AGE": lambda job: times.age(job.created_at)},
                done="canceled",
                empty="no jobs match the filters; to list all jobs: draftsman jobs",
                filters=filters,
                dry_run=dry_run,
                yes=yes,
            )
            if not numbers:
                return
        await perform_each(
            app,
            rt,
            actions.cancel,
            numbers,
            name=job_name,
            unknown=unknown,
            as_list=not jobs,
            reason=reason or "",
            force=force,
        )
