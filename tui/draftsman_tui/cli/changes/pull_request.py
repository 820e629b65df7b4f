"""The commands `merge` and `open`."""

from __future__ import annotations

from typing import Final

import click

from draftsman.actions import changes as actions
from draftsman.errors import Refused
from draftsman.ids import JobRef, job_name
from draftsman_tui.cli.app import App, command, number_of
from draftsman_tui.cli.jobs import job_wait
from draftsman_tui.cli.perform import act
from draftsman_tui.common.job_pages import pages_of
from draftsman_tui.terminal import params
from draftsman_tui.terminal.browser import open_url


@command(
    "merge",
    section="Changes",
    examples=("draftsman merge D-142", "draftsman merge D-142 --wait"),
    does=(actions.merge,),
)
@click.argument("job", type=params.JOB)
@click.option("--wait", is_flag=True, help="Wait until it is merged or refused.")
async def merge(app: App, job: JobRef, wait: bool) -> None:
    """Merge the pull request of a job, after an approval.

    It submits a job that waits for the checks of the commit, asks for an approval, and merges the
    commit under the rules of the forge. The commit is that of the newest follow-up. It is refused
    for a draft, failed checks, and commits that neither the job nor a follow-up published.
    """
    async with app.runtime() as rt:
        number = await number_of(rt, job)
        result = await act(app, rt, actions.merge, number, prints=not wait)
        if wait:
            submitted = result.value
            app.out.info(str(result))
            with job_wait.left_by_interrupt(app, submitted.number):
                await job_wait.print_missing_worker(app, rt, submitted.number)
                await job_wait.narrate(app, rt, submitted.number, None)
            await job_wait.conclude(app, rt, submitted.number, None, outcome=submitted.outcome)


# The `open` command.


PAGES: Final = {"pr": "pull request", "ticket": "ticket", "repo": "repository", "thread": "thread"}
"""Names of pages, and the beginnings of their titles."""


@command(
    "open",
    section="Changes",
    examples=(
        "draftsman open D-142",
        "draftsman open D-142 thread",
        "draftsman open D-142 --print",
    ),
)
@click.argument("job", type=params.JOB_OF)
@click.argument("page", type=click.Choice(list(PAGES)), required=False)
@click.option("--print", "print_only", is_flag=True, help="Print the URLs; open no browser.")
async def open_page(app: App, job: JobRef, page: str | None, print_only: bool) -> None:
    """Open the pull request, ticket or thread of a job.

    Without an argument, the first that exists is opened. Without a browser, the URL is printed.
    """
    async with app.runtime(read_only=True) as rt:
        number = await number_of(rt, job)
        pages = await pages_of(rt, number)
    order = [page] if page else ["pr", "ticket", "thread", "repo"]
    links = [
        (title, url) for name in order for title, url in pages if title.startswith(PAGES[name])
    ]
    if not links:
        have = ", ".join(title for title, _ in pages)
        text = f"{job_name(number)} has no {PAGES[page] if page else 'web page'}"
        raise Refused(f"{text}; it has: {have}" if have else text)
    chosen = links if print_only else links[:1]
    opened = False if print_only or app.json else open_url(links[0][1])
    if app.json:
        app.out.document([{"title": title, "url": url} for title, url in chosen])
    elif opened:
        app.out.info(f"opened {links[0][1]}")
    else:
        app.out.print("\n".join(url for _, url in chosen))


open = open_page  # noqa: A001 - the module has the command under its name
