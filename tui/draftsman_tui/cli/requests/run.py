"""The `run` command: submit a job and follow it to its end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import click

from draftsman.actions import requests as actions
from draftsman.agent_runs.activity.log_entries import END, entry_text
from draftsman.errors import UsageError
from draftsman.jobs.job import TERMINAL
from draftsman.queues.queue_models import DEFAULT_SECONDS
from draftsman_tui.cli.app import App, command
from draftsman_tui.cli.jobs import job_wait
from draftsman_tui.cli.jobs.log_printer import LogPrinter, LogProgress
from draftsman_tui.cli.perform import act
from draftsman_tui.cli.requests.request_options import submit_options, submitted_fields
from draftsman_tui.cli.requests.submit import built_request, check_before, finished_key_text
from draftsman_tui.cli.requests.type_options import TypedCommand, typed_fields
from draftsman_tui.common.requests import options_named
from draftsman_tui.terminal import params
from draftsman_tui.terminal.results import result_line

if TYPE_CHECKING:
    from draftsman.actions.action import ActionResult
    from draftsman.runtime import Runtime


@command(
    "run",
    section="Jobs",
    cls=TypedCommand,
    examples=(
        "draftsman run --agent tidy --repo . 'Tidy up the tests'",
        "draftsman run --now --agent tidy --repo . 'Fix the build'",
        "draftsman run report:weekly --week 31",
        "draftsman run --now --reserve-for 30m --type report:weekly --payload @week.json",
        "draftsman run --group release --type notify",
    ),
    does=(actions.submit, actions.submit_now),
)
@submit_options
@click.option("--now", is_flag=True, help="Run before all other jobs of the queue.")
@click.option(
    "--reserve-for",
    type=params.DURATION,
    metavar="DURATION",
    help="With --now: maximum time until the start, and between heartbeats. Default: 10m.",
)
async def run(
    app: App,
    text: tuple[str, ...],
    unchecked: bool,
    now: bool,
    reserve_for: float | None,
    timeout: float | None,
    **options: Any,
) -> None:
    """Submit a job and follow it to its end.

    TEXT is the instructions for the agent; - reads them from stdin. A described type, as its first
    word, takes its parameters as options, as in draftsman submit. The log of the job goes to
    stdout; its events and questions go to stderr. On a terminal the questions are asked here.
    Ctrl-C stops following, and the job continues.

    With --now, the job reserves its queue: workers claim no other job of the queue, and running
    jobs continue. The reservation ends with the job, when the job waits for a person, or after
    --reserve-for without a start or a heartbeat. It needs the role operator, and is refused while
    the queue is reserved or paused.

    Exits with 0 if the job completed, 1 if it ended in any other status or is still active after
    --timeout, and 5 if a question was not answered in time.
    """
    if reserve_for is not None and not now:
        raise UsageError("--reserve-for requires --now")
    ctx = click.get_current_context()
    fields = submitted_fields(text, options)
    check_before(app, ctx, text, fields)
    async with app.runtime() as rt:
        request = built_request(app, await typed_fields(rt, ctx, text, fields))
        with options_named():
            request = await rt.request_checks.resolve(request, unchecked=unchecked)
        result: ActionResult[Any]
        fields = {}
        if now:
            seconds = DEFAULT_SECONDS if reserve_for is None else reserve_for
            result = await act(app, rt, actions.submit_now, request, seconds=seconds, prints=False)
            job, fields["reservation"] = result.value
        else:
            result = await act(app, rt, actions.submit, request, prints=False)
            job = result.value
        if job.outcome == "deduplicated" and job.status in TERMINAL:
            app.out.info(finished_key_text(job))
        app.out.print_stderr(result_line(result))
        await _follow(app, rt, job.number, timeout)
        await job_wait.conclude(app, rt, job.number, timeout, outcome=job.outcome, **fields)


async def _follow(app: App, rt: Runtime, number: int, timeout: float | None) -> None:
    """Print events, questions and the log until the job ends or the timeout expires."""
    progress = LogProgress()
    printer = LogPrinter(app.out, number, headed_from=None, folds=True, live=not app.json)
    with job_wait.left_by_interrupt(app, number):
        await job_wait.print_missing_worker(app, rt, number)
        async with asyncio.TaskGroup() as group:
            group.create_task(job_wait.narrate(app, rt, number, timeout, printer, progress))
            group.create_task(_print_log(app, rt, number, timeout, printer, progress))


async def _print_log(
    app: App,
    rt: Runtime,
    number: int,
    timeout: float | None,
    printer: LogPrinter,
    progress: LogProgress,
) -> None:
    """Print log and activity of the job on stdout, or with --json on stderr."""

    def caught_up() -> None:
        progress.caught_up()
        if not progress.lock.locked():
            printer.rest()

    try:
        async with asyncio.timeout(timeout):
            entries = rt.log_feed.entries(number, follow=True, on_complete=caught_up)
            async for entry, _ in entries:
                if entry.kind == END:  # stderr has it, with what follows
                    continue
                async with progress.lock:
                    if not app.json:
                        printer.print(entry)
                    elif not entry.is_open:
                        app.out.print_stderr(entry_text(entry).removesuffix("\n"))
    except TimeoutError:
        return
    finally:
        progress.end()
        printer.close()
