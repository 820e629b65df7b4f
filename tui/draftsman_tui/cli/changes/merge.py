"""The `merge` command."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from draftsman_tui.changes.merge_request import published_pull_request, request_merge
from draftsman_tui.cli.app import App, command, number_of
from draftsman_tui.cli.jobs import job_wait
from draftsman_tui.terminal import params
from draftsman_tui.terminal.output import as_data

if TYPE_CHECKING:
    from draftsman.ids import JobRef


@command("merge", examples=("draftsman merge D-142", "draftsman merge D-142 --wait"))
@click.argument("job", type=params.JOB)
@click.option("--wait", is_flag=True, help="Wait until it is merged or refused.")
async def merge(app: App, job: JobRef, wait: bool) -> None:
    """Merge the pull request of a job, after an approval.

    It submits a job that waits for the checks of the commit, asks for an approval, and merges the
    commit under the rules of the forge. The commit is that of the newest follow-up. It is refused
    for a draft, failed checks, and commits that neither the job nor a follow-up published.
    """
    async with app.runtime() as rt:
        number, url = await published_pull_request(rt, await number_of(rt, job))
        submitted = await request_merge(rt, number, url)
        if wait:
            app.out.info(f"{submitted.name} {submitted.outcome}")
            with job_wait.left_by_interrupt(app, submitted.number):
                await job_wait.print_missing_worker(app, rt, submitted.number)
                await job_wait.narrate(app, rt, submitted.number, None)
            await job_wait.conclude(app, rt, submitted.number, None, outcome=submitted.outcome)
            return
    if app.json:
        app.out.document(as_data(submitted) | {"pr_url": url})
        return
    app.out.print(f"{submitted.name} asks for the merge of {url} once its checks have passed")
