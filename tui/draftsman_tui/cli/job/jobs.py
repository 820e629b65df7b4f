"""`jobs` and `why`: what there is, and what it waits for."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import click

from draftsman.domain.job import TERMINAL, Status
from draftsman.domain.retries.retry_policy import layer
from draftsman.domain.text import first_line
from draftsman_tui.cli.app import App, command, number_of
from draftsman_tui.common import params, times
from draftsman_tui.common.job_text import status_text
from draftsman_tui.common.output import as_data, line, one_line, styled
from draftsman_tui.common.worker_health import health_of

if TYPE_CHECKING:
    from draftsman.domain.ids import JobRef
    from draftsman.domain.question import Question
    from draftsman.runtime import Runtime

MAX_JOBS: Final = 1000
"""Jobs that one call lists."""
MAX_ERROR_LENGTH: Final = 120
"""Characters of an error that a line shows, where there is room."""


@command(
    "jobs",
    examples=(
        "draftsman jobs --status waiting",
        "draftsman jobs --status failed,dead_letter --since 2h",
        "draftsman jobs --json | jq '.[].number'",
    ),
)
@click.option("--status", type=params.STATUS, multiple=True, help="Only these; `waiting` is both.")
@click.option("--agent", type=params.TEXT, help="Only those of this agent.")
@click.option("--repo", type=params.TEXT, help="Only this repository: name or owner/name.")
@click.option("--tag", type=params.TEXT, help="Only those with this tag.")
@click.option("--since", type=params.DURATION, help="Only the newer than this: 2h, 1d.")
@click.option(
    "--limit", type=click.IntRange(1, MAX_JOBS), metavar="N", default=50, show_default=True
)
@click.option("--before", type=params.JOB, help="Only older ones than this job.")
async def jobs(
    app: App,
    status: tuple[tuple[Status, ...], ...],
    since: float | None,
    before: JobRef | None,
    **filters: Any,
) -> None:
    """List jobs, newest first.

    WAITS FOR says what comes next: who has to answer, when it is tried again, what is missing; of
    what failed, WHY says how its last error began.
    """
    wanted = [one for several in status for one in several] or None
    oldest = datetime.now(UTC) - timedelta(seconds=since) if since else None
    async with app.runtime(read_only=True) as rt:
        cursor = before.number if before else None
        if before and cursor is None:
            cursor = await number_of(rt, before)
        page = await rt.read_model.page(statuses=wanted, since=oldest, before=cursor, **filters)
        found = page.jobs
        if app.json:
            app.out.document(found)
        elif found:
            await _show(app, rt, found)
            if len(found) == filters["limit"] and app.out.on_screen:
                again = {"status": ",".join(wanted or ()), "since": since, **filters}
                app.out.info(f"there may be more: {_older(found[-1].number, again)}")
        elif page.scanned_to is None:
            if wanted == [Status.DEAD_LETTER] and not (since or before or _given(filters)):
                app.out.info("no dead letters: no job has spent all its tries")
            else:
                _none(app, narrowed=bool(wanted or since or before or _given(filters)))
        if page.scanned_to is not None:
            again = {"status": ",".join(wanted or ()), "since": since, **filters}
            older = _older(page.scanned_to, again)
            app.out.info(f"looked back to D-{page.scanned_to}; for what is older: {older}")


@command("why", examples=("draftsman why D-142",))
@click.argument("job", type=params.JOB)
async def why(app: App, job: JobRef) -> None:
    """Say what a job waits for.

    It is the reason that keeps it where it is now, and what to do about it.
    """
    async with app.runtime(read_only=True) as rt:
        number = await number_of(rt, job)
        found = await rt.read_model.why(number)
    if app.json:
        shown = {key: value for key, value in as_data(found).items() if key != "parts"}
        app.out.document({"number": number} | shown)
        return
    app.out.print(line(f"D-{number} ", status_text(found.status), f": {found.text}"))
    app.out.print(styled(f"  {found.then}", "dim"))


async def _show(app: App, rt: Runtime, found: list[Any]) -> None:
    open_ones = await rt.questions.open_of([job.number for job in found])
    asked = {question.job: question for question in open_ones}
    workers = await rt.read_model.workers()
    live = [one for one in workers if health_of(one, rt.settings) != "lost"]
    served = {queue for one in live for queue in one.queues}
    ended = all(job.status in TERMINAL for job in found)
    rows = [
        (
            styled(f"D-{job.number}", "bold"),
            status_text(job.status, job.error_class),
            one_line(job.ticket_title or job.type),
            job.repo_name or "",
            times.span((datetime.now(UTC) - job.created_at).total_seconds()),
            _next(job, asked.get(job.number), served),
        )
        for job in found
    ]
    heads = ("JOB", "STATUS", "TITLE", "REPO", "AGE", "WHY" if ended else "WAITS FOR")
    kept = [place for place in range(len(heads)) if place != 3 or any(row[3] for row in rows)]
    app.out.table(
        [heads[place] for place in kept],
        [[row[place] for place in kept] for row in rows],
        flexible=(2, len(kept) - 1),
        right=(len(kept) - 2,),
    )


def _next(job: Any, question: Question | None, served: set[str]) -> str:
    """Return in few words what the job waits for, or how its last error begins."""
    error = first_line(job.last_error or "", MAX_ERROR_LENGTH)
    match job.status:
        case Status.WAITING_FOR_INPUT | Status.WAITING_FOR_APPROVAL:
            verb = "answer" if job.status is Status.WAITING_FOR_INPUT else "approve"
            if question is None:
                return f"{verb}"
            until = question.expires_at
            return f"{verb} {question.name}" + (f" {times.left(until)}" if until else "")
        case Status.RETRYING:
            return f"{_layer(job)} {times.due(job.due_in)}: {error}"
        case Status.SCHEDULED:
            return f"its time {times.due(job.due_in)}"
        case Status.QUEUED | Status.RESUMED:
            return "a free slot" if job.queue in served else f"a worker for {job.queue}"
        case Status.CLAIMED:
            return "its turn"
        case Status.FAILED | Status.DEAD_LETTER:
            return error
        case _:
            return "" if job.status in TERMINAL else "its run"


def _older(number: int, options: Mapping[str, Any]) -> str:
    """Return the command that lists what is older than a job, with the same filters."""
    default = next(one.default for one in jobs.params if one.name == "limit")
    given = {name: value for name, value in options.items() if value}
    if given.get("limit") == default:
        del given["limit"]
    if "since" in given:
        given["since"] = times.format_duration(given["since"])
    words = [word for name, value in given.items() for word in (f"--{name}", str(value))]
    return shlex.join(["draftsman", "jobs", *words, "--before", f"D-{number}"])


def _layer(job: Any) -> str:
    spent = layer(
        job.error_class,
        attempts=job.attempts,
        max_attempts=job.max_attempts,
        retry_count=job.retry_count,
        max_retries=job.max_retries,
    )
    return spent.replace(" of ", "/")


def _given(filters: dict[str, Any]) -> bool:
    return any(value for name, value in filters.items() if name != "limit")


def _none(app: App, *, narrowed: bool) -> None:
    if narrowed:
        app.out.info("no job is like that; see all: draftsman jobs")
    else:
        app.out.info("no jobs yet; make one: draftsman demo, or draftsman submit --help")
