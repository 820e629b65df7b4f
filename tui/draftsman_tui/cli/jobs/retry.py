"""The `retry` command: retry finished jobs, named or matching a filter."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from draftsman.actions import jobs as actions
from draftsman.errors import UsageError
from draftsman.formats.amounts import counted
from draftsman.formats.json_data import as_data
from draftsman.ids import job_name
from draftsman.jobs.job import Status
from draftsman_tui.cli.app import App, command
from draftsman_tui.cli.jobs.selection import (
    confirm_selected,
    filter_options,
    filters_of,
    finished_jobs,
    not_settled,
)
from draftsman_tui.cli.perform import numbers_of, perform_each
from draftsman_tui.terminal import params

if TYPE_CHECKING:
    from draftsman.ids import JobRef
    from draftsman.jobs.requests.service.submissions import SubmittedJob
    from draftsman.runtime import Runtime


@command(
    "retry",
    section="Control of jobs",
    examples=(
        "draftsman retry D-142",
        "draftsman retry D-140 D-141 --fresh",
        "draftsman retry D-142 --with-answer",
        "draftsman retry --status dead_letter --type llm_generate --since 2h --dry-run",
        "draftsman retry --status failed,dead_letter --repo acme/pay --yes",
        "draftsman retry --status failed --queue nightly --tag team=pay",
    ),
    does=(actions.retry,),
)
@params.jobs_argument()
@filter_options("Retry", "finished within")
@params.yes_option
@click.option("--fresh", is_flag=True, help="Start over, without the last checkpoint.")
@click.option("--again", is_flag=True, help="Include completed jobs.")
@click.option("--alone", is_flag=True, help="Do not retry the jobs that it caused to be skipped.")
@click.option("--with-answer", is_flag=True, help="Use the answer that arrived too late.")
async def retry(
    app: App,
    jobs: tuple[JobRef, ...],
    dry_run: bool,
    yes: bool,
    fresh: bool,
    again: bool,
    alone: bool,
    with_answer: bool,
    **options: Any,
) -> None:
    """Retry finished jobs.

    Each retry is a new job that starts from the last checkpoint. Its questions are asked again.
    Retrying a job a second time returns its existing retry. Jobs that were skipped because it did
    not complete are retried with it, and wait for the retry; --alone leaves them out.

    With --status, retries every matching job that has not been retried yet, after a confirmation;
    of failures, those that need a person, as in draftsman jobs --failures: what was dismissed or
    denied is retried by its name alone. If interrupted, run the same command again to continue.
    Exits with 1 if a job could not be retried.
    """
    filters = filters_of(jobs, options, Status.DEAD_LETTER, dry_run=dry_run)
    for option, is_set in (("--with-answer", with_answer), ("--alone", alone)):
        if is_set and not jobs:
            raise UsageError(f"{option} cannot be combined with --status; name the jobs")
    async with app.runtime(read_only=dry_run) as rt:
        numbers, unknown = await numbers_of(app, rt, jobs)
        if not jobs:
            matching = await finished_jobs(rt, filters)
            numbers = await confirm_selected(
                app,
                rt,
                actions.retry,
                not_settled(app, matching),
                done="retried",
                empty="no jobs to retry; to list dead letters: draftsman jobs --status dead_letter",
                filters=filters,
                dry_run=dry_run,
                yes=yes,
            )
            if not numbers:
                return
        await perform_each(
            app,
            rt,
            actions.retry,
            numbers,
            name=job_name,
            key="retry_of",
            data=lambda number, new: {"retry_of": number, **as_data(new), "error": None},
            unknown=unknown,
            after=partial(_print_links, app, rt) if jobs and not app.json else None,
            as_list=True,
            fresh=fresh,
            again=again,
            with_answer=with_answer,
            alone=alone,
        )


async def _print_links(app: App, rt: Runtime, number: int, retry: SubmittedJob) -> None:
    """Print for which jobs a retry does not wait, and how many wait for it."""
    if causes := await rt.workflows.causes(number):
        names = " ".join(map(job_name, causes))
        app.out.info(
            f"{job_name(number)} was skipped because of {names}, which its retry does not wait"
            f" for; to repeat both, use: draftsman retry {names}"
        )
    if waiting := await rt.workflows.waiting_count(retry.number):
        count = counted(waiting, "job waits", "jobs wait")
        app.out.info(f"{count} for it: draftsman show {retry.name} --tree")
