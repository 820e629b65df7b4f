"""The `merge` command."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from draftsman.domain.ids import job_name
from draftsman.errors import CommandHint, Refused
from draftsman_tui.cli.app import App, command, number_of
from draftsman_tui.cli.job import job_wait
from draftsman_tui.common import params
from draftsman_tui.common.output import as_data

if TYPE_CHECKING:
    from draftsman.domain.ids import JobRef
    from draftsman.runtime import Runtime

TYPE = "merge_pull_request"


@command("merge", examples=("draftsman merge D-142", "draftsman merge D-142 --wait"))
@click.argument("job", type=params.JOB)
@click.option("--wait", is_flag=True, help="Wait until it is merged or refused.")
async def merge(app: App, job: JobRef, wait: bool) -> None:
    """Merge the pull request of a job, after an approval.

    It submits a job that waits for the checks of the commit, asks for an approval, and merges the
    commit under the rules of the forge. It is refused for a draft, failed checks, and commits that
    the job did not publish.
    """
    from draftsman.domain.messages.target import Target
    from draftsman.services.jobs.submissions import invocation

    async with app.runtime() as rt:
        number = await number_of(rt, job)
        name, url = job_name(number), await _url(rt, number)
        targets = await rt.outbox.targets(number)
        request = invocation(
            type=TYPE,
            payload={"job": number},
            queue=(await rt.read_model.job(number)).queue,
            title=f"Merge the pull request of {name}",
            url=url,
            subject_key=f"{TYPE}:{name}",
            notify=tuple(Target(row.channel, row.target, row.thread).name for row in targets),
        )
        await rt.request_checks.check(request, chats=False)
        submitted = await rt.submissions.submit(request, await rt.actor())
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


async def _url(rt: Runtime, number: int) -> str:
    """Return the pull request that the job opened; raises Refused."""
    from draftsman.domain.forges.pull_request import recorded

    opened = recorded(await rt.checkpoints.steps(number))
    if opened is None or "url" not in opened:
        name = job_name(number)
        problem = "it opened none on a forge of [forges]" if opened is None else opened["problem"]
        raise Refused(
            f"{name} has no pull request to merge: {problem}", hint=CommandHint("show", name)
        )
    return str(opened["url"])
