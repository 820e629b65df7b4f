"""The `wait` command, and the waiting of `submit --wait`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import click

from draftsman.entities.filter_values import unknown_value
from draftsman.errors import AnswerTimeout, DraftsmanError, UsageError
from draftsman.formats import times
from draftsman.formats.amounts import counted
from draftsman.formats.invisible import one_line
from draftsman.formats.json_data import as_data
from draftsman.ids import job_name
from draftsman.jobs.job import LEASED, TERMINAL, WAITING, Job, Status
from draftsman.jobs.status_display import STATUSES
from draftsman_tui.cli.app import App, command, number_of
from draftsman_tui.common.jobs import pause_text, status_text
from draftsman_tui.terminal import params
from draftsman_tui.terminal.output import line, styled

if TYPE_CHECKING:
    from rich.console import RenderableType

    from draftsman.ids import JobRef
    from draftsman.jobs.details.wait_reason import WaitReason
    from draftsman.runtime import Runtime
    from draftsman_tui.cli.jobs.log_printer import LogPrinter, LogProgress
    from draftsman_tui.cli.questions.answers import QuestionPrompter


@command(
    "wait",
    section="Jobs",
    examples=(
        "draftsman wait D-142 --timeout 10m && echo completed",
        "draftsman wait D-7 D-10..D-20",
        "draftsman wait --group release",
        "draftsman wait --tag nightly --mine",
    ),
)
@params.jobs_argument()
@click.option("--group", type=params.TEXT, help="Wait for the jobs of a group.")
@click.option("--type", type=params.TEXT, help="Wait for the unfinished jobs of this type.")
@click.option("--tag", "tags", type=params.TEXT, multiple=True, help="Those with this tag.")
@click.option("--mine", is_flag=True, help="Those that you submitted.")
@click.option("--timeout", type=params.DURATION, help="Stop waiting after this time, e.g. 10m.")
async def wait(
    app: App, jobs: tuple[JobRef, ...], timeout: float | None, mine: bool, **filters: Any
) -> None:
    """Wait for jobs to finish.

    On a terminal, the questions of a single job are asked here: the answer is read from the
    terminal, and an empty line leaves the question open for others. Filters select the jobs that
    are unfinished now, at most a thousand; --group those that ended, too.

    Exits with 0 if all completed, else with the code of the first that did not: 1 if it ended in
    any other status or is still active after the timeout, and 5 if a question was not answered in
    time. With several jobs, --json prints a list.
    """
    given = {name: value for name, value in filters.items() if value}
    if bool(jobs) == bool(given or mine):
        raise UsageError("name jobs, or filter them by --group, --type, --tag or --mine")
    async with app.runtime() as rt:
        if jobs:
            numbers = [await number_of(rt, job) for job in jobs]
        else:
            numbers = await _matching(rt, mine=mine, **given)
        if len(jobs) != 1:
            unknown = "" if numbers else await unknown_value(rt, given)
            await _wait_for_all(app, rt, numbers, timeout, unknown)
            return
        with left_by_interrupt(app, numbers[0]):
            await print_missing_worker(app, rt, numbers[0])
            await until_end(app, rt, numbers[0], timeout)
        await conclude(app, rt, numbers[0], timeout)


async def _matching(rt: Runtime, *, mine: bool, **filters: Any) -> list[int]:
    """Return the jobs of a group, or else the unfinished jobs that match, oldest first.

    Raises NotFound for a group: one that may come later is not waited for.
    """
    from draftsman_tui.cli.jobs.jobs import MAX_JOBS

    if "group" in filters:
        await rt.workflows.groups.get(filters["group"])
    else:
        filters["statuses"] = [status for status in Status if status not in TERMINAL]
    invoker = (await rt.actor()).voter if mine else None
    found = await rt.read_model.jobs(invoker=invoker, limit=MAX_JOBS, **filters)
    return [job.number for job in reversed(found)]


async def _wait_for_all(
    app: App, rt: Runtime, numbers: Sequence[int], timeout: float | None, unknown: str
) -> None:
    """Wait for all jobs, and print each when it ends; raises the error of the first that failed."""
    if not numbers:
        app.out.info(unknown or "no unfinished jobs match; to list all jobs: draftsman jobs")
    with suppress(TimeoutError):
        async with asyncio.timeout(timeout):
            async for number in rt.read_model.ends(numbers):
                if not app.json:
                    job = await rt.read_model.job(number)
                    app.out.print(line(f"{job.name} ", status_text(job.status, job.error_class)))
    found = [await rt.read_model.job(number) for number in dict.fromkeys(numbers)]
    if app.json:
        app.out.document([as_data(job) for job in found])
    errors = [
        await _wait_error(rt, job, timeout) for job in found if job.status is not Status.COMPLETED
    ]
    if len(errors) > 1:
        more = counted(len(errors) - 1, "more job")
        raise type(errors[0])(f"{errors[0]}; {more} did not complete")
    if errors:
        raise errors[0]


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
    await _print_reason(app, rt, number, lambda why: why.lacks_worker)


async def print_waits(
    app: App, rt: Runtime, number: int, printer: LogPrinter, progress: LogProgress
) -> None:
    """Print on stderr why a followed job waits: at first, and for a person, until it ends."""
    is_first = True
    async for current in rt.read_model.versions(number):
        does_wait = current.status not in LEASED | TERMINAL
        if current.status in WAITING or (is_first and does_wait):
            await progress.wait()
            if app.out.on_screen:
                printer.end()
            await _print_reason(app, rt, number, lambda why: why.status not in LEASED | TERMINAL)
        is_first = False


async def _print_reason(
    app: App, rt: Runtime, number: int, applies: Callable[[WaitReason], bool]
) -> None:
    """Print on stderr why the job waits, and what follows, if this still applies."""
    why = await rt.read_model.why(number)
    if applies(why):
        name = job_name(number)
        lines = [one_line(text) for text in why.next_lines()]
        text = one_line(why.text)
        if why.needs:
            app.out.info("\n".join([f"{name}: {text}", *lines]))
        else:
            text = f"{text}; {lines[0]}"
            app.out.info(text if text.startswith(f"{name}/") else f"{name}: {text}")


async def print_pause(app: App, rt: Runtime, number: int) -> None:
    """Print who paused the job, why, and how to resume it, if it is still paused."""
    if text := await pause_text(rt, number):
        app.out.info(text)


def _prompter(app: App, rt: Runtime) -> QuestionPrompter:
    from draftsman_tui.cli.questions.answers import QuestionPrompter

    return QuestionPrompter(app, rt)


async def _print_next_retry(app: App, rt: Runtime, number: int) -> None:
    """Print when the job is retried, if it still waits for that."""
    await _print_reason(app, rt, number, lambda why: why.status is Status.RETRYING)


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
    from draftsman_tui.common.events import event_text
    from draftsman_tui.common.sections import reader_at

    prompter = _prompter(app, rt)
    try:
        async with asyncio.timeout(timeout):
            async for event in rt.read_model.follow(number):
                if printer is not None and app.out.on_screen:
                    printer.end()
                app.out.print_stderr(event_text(event, reader_at(policy=rt.policy)), cut=True)
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
    from draftsman.agent_runs.changes.shown_diff import diffstat
    from draftsman.deliveries import result_text
    from draftsman.jobs.details.sections.runs import result_parts
    from draftsman_tui.common.artifacts import read_patch
    from draftsman_tui.common.sections import part_lines

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
