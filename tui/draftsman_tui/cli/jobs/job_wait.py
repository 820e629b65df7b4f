"""The `wait` command, and the waiting of `submit --wait`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from draftsman.agent_runs.changes.shown_diff import diffstat
from draftsman.deliveries import result_text
from draftsman.errors import AnswerTimeout, DraftsmanError
from draftsman.formats import times
from draftsman.formats.invisible import one_line
from draftsman.formats.json_data import as_data
from draftsman.ids import job_name
from draftsman.jobs.details.sections.runs import result_parts
from draftsman.jobs.job import TERMINAL, WAITING, Job, Status
from draftsman.jobs.status_display import STATUSES
from draftsman_tui.cli.app import App, command, number_of
from draftsman_tui.common.artifacts import read_patch
from draftsman_tui.common.events import event_text
from draftsman_tui.common.jobs import pause_text, status_text
from draftsman_tui.common.sections import part_lines
from draftsman_tui.terminal import params
from draftsman_tui.terminal.output import line, styled

if TYPE_CHECKING:
    from rich.console import RenderableType

    from draftsman.ids import JobRef
    from draftsman.runtime import Runtime
    from draftsman_tui.cli.jobs.logs import LogPrinter, LogProgress
    from draftsman_tui.cli.questions.answers import QuestionPrompter


@command("wait", section="Jobs", examples=("draftsman wait D-142 --timeout 10m && echo completed",))
@click.argument("job", type=params.JOB_OF)
@click.option("--timeout", type=params.DURATION, help="Stop waiting after this time, e.g. 10m.")
async def wait(app: App, job: JobRef, timeout: float | None) -> None:
    """Wait for a job to finish.

    On a terminal, its questions are asked here: the answer is read from the terminal, and an empty
    line leaves the question open for others.

    Exits with 0 if the job completed, 1 if it ended in any other status or is still active after
    the timeout, and 5 if a question was not answered in time.
    """
    async with app.runtime() as rt:
        number = await number_of(rt, job)
        with left_by_interrupt(app, number):
            await print_missing_worker(app, rt, number)
            await until_end(app, rt, number, timeout)
        await conclude(app, rt, number, timeout)


async def until_end(app: App, rt: Runtime, number: int, timeout: float | None) -> None:
    """Wait for the end of the job or the timeout.

    Prints retries and pauses on stderr, and asks questions if this is a terminal.
    """
    last = 0
    paused = False
    prompter = _prompter(app, rt) if app.out.interactive and not app.json else None
    try:
        async with asyncio.timeout(timeout):
            async for current in rt.read_model.versions(number):
                if current.paused and not paused:
                    await print_pause(app, rt, number)
                elif current.status is Status.RETRYING and current.version != last:
                    await _print_next_retry(app, rt, number)
                last = current.version
                paused = current.paused
                if current.status in WAITING and prompter is not None:
                    await prompter.ask(number)
    except TimeoutError:
        return


@contextmanager
def left_by_interrupt(app: App, number: int) -> Iterator[None]:
    """Print after Ctrl-C that the job continues, and how to follow and cancel it."""
    try:
        yield
    except asyncio.CancelledError:
        name = job_name(number)
        app.out.info(
            f"{name} continues; to follow it: draftsman logs -f {name};"
            f" to cancel it: draftsman cancel {name}"
        )
        raise


async def print_missing_worker(app: App, rt: Runtime, number: int) -> None:
    """Print on stderr that no live worker can claim the job, and how to start one."""
    why = await rt.read_model.why(number)
    if why.lacks_worker:
        app.out.info(f"{why.text}; {why.next_step}")


async def print_pause(app: App, rt: Runtime, number: int) -> None:
    """Print who paused the job, why, and how to resume it, if it is still paused."""
    if text := await pause_text(rt, number):
        app.out.info(text)


def _prompter(app: App, rt: Runtime) -> QuestionPrompter:
    from draftsman_tui.cli.questions.answers import QuestionPrompter

    return QuestionPrompter(app, rt)


async def _print_next_retry(app: App, rt: Runtime, number: int) -> None:
    """Print when the job is retried, if it still waits for that."""
    why = await rt.read_model.why(number)
    if why.status is Status.RETRYING:
        app.out.info(f"{job_name(number)}: {one_line(why.text)}; {why.next_step}")


async def narrate(
    app: App,
    rt: Runtime,
    number: int,
    timeout: float | None,
    printer: LogPrinter | None = None,
    progress: LogProgress | None = None,
) -> None:
    """Print events of the job on stderr, and ask its questions, until it ends or the timeout.

    `printer` prints its log meanwhile, and is at rest while a question is asked.
    """
    prompter = _prompter(app, rt)
    try:
        async with asyncio.timeout(timeout):
            async for event in rt.read_model.follow(number):
                if printer is not None and app.out.on_screen:
                    printer.end()
                app.out.print_stderr(event_text(event), cut=True)
                if event.kind == "job_paused":
                    await print_pause(app, rt, number)
                if event.to_status == Status.RETRYING:
                    await _print_next_retry(app, rt, number)
                if event.to_status not in WAITING:
                    continue
                if printer is None or progress is None:
                    await prompter.ask(number)
                    continue
                await progress.wait()
                async with progress.lock:
                    if app.out.on_screen:
                        printer.end()
                    await prompter.ask(number)
    except TimeoutError:
        return


async def conclude(app: App, rt: Runtime, number: int, timeout: float | None, **more: Any) -> None:
    """Print the status of the job, on a terminal with its result; raises unless it completed."""
    job = await rt.read_model.job(number)
    if app.json:
        app.out.document(as_data(job) | more)
    else:
        app.out.print(line(f"{job.name} ", status_text(job.status, job.error_class)))
        if app.out.on_screen and job.result:
            app.out.print(*await _result_lines(rt, job))
    if job.status is not Status.COMPLETED:
        if (why := await rt.read_model.why(number)).reason == "no_program":
            app.out.info(why.next_step)
        raise await _wait_error(rt, job, timeout)


async def _result_lines(rt: Runtime, job: Job) -> list[RenderableType]:
    """Return the result of a job, its pull request and its changed files."""
    result = job.result or {}
    lines = list(part_lines([*result_parts(job)]))
    opened = result_text.pr_url(result)
    if job.pr_url and job.pr_url != opened:
        lines.append(styled(f"  {job.pr_url}"))
    if patch := await read_patch(rt, job.number):
        changes = [*diffstat(patch).splitlines(), f"draftsman diff {job.name}"]
        if "files_changed" in result:  # the sums stand next to the branch
            del changes[-2]
        lines += [styled(f"  {text_line}") for text_line in changes]
    return lines


async def _wait_error(rt: Runtime, job: Job, timeout: float | None) -> DraftsmanError:
    """Return the error for a wait that did not end with a completed job."""
    after = f" after {times.span(timeout)}" if timeout else ""
    if job.status in WAITING:
        questions = await rt.questions.open(job.number)
        names = ", ".join(question.name for question in questions) or job.name
        verb = "are" if len(questions) > 1 else "is"
        commands = ", ".join(f"draftsman {item.verb} {item.name}" for item in questions)
        commands = commands or f"draftsman why {job.name}"
        return AnswerTimeout(f"{names} {verb} still open{after}; run: {commands}")
    if job.status is Status.EXPIRED:
        return AnswerTimeout(
            f"{job.name} expired: no answer in time; to retry it: draftsman retry {job.name}"
        )
    if job.status not in TERMINAL:
        return DraftsmanError(
            f"{job.name} is still {STATUSES[job.status].word}{after}; see: draftsman why {job.name}"
        )
    outcome = STATUSES[job.status].predicate
    reason = job.last_error or job.cancel_reason
    return DraftsmanError(f"{job.name} {outcome}{f': {reason}' if reason else ''}")
