"""The `jobs` and `why` commands: list jobs, and explain why a job is waiting."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import click

from draftsman.durations import format_duration
from draftsman.entities import cells
from draftsman.entities.cells import Cell
from draftsman.entities.filter_values import ME, unknown_value
from draftsman.entities.jobs import DEAD_LETTERS, JOBS, decision_text, status_of
from draftsman.entities.queues import hold_text
from draftsman.errors import Refused, UsageError
from draftsman.formats import times
from draftsman.formats.amounts import COUNT_LIMIT, count_text
from draftsman.formats.invisible import one_line
from draftsman.ids import job_name, question_name, unknown_question
from draftsman.jobs.job import TERMINAL, WAITING, Status
from draftsman.jobs.retries import next_try_of
from draftsman.text import first_line
from draftsman_tui.cli.app import App, command, number_of
from draftsman_tui.cli.lists import SELECTED_FROM, print_count, print_list, print_table, selected
from draftsman_tui.cli.queues.order import print_queued
from draftsman_tui.common.jobs import reason_data, status_text
from draftsman_tui.terminal import params
from draftsman_tui.terminal.output import line, styled

if TYPE_CHECKING:
    from draftsman.ids import JobRef
    from draftsman.jobs.job_summary import JobFilters, JobPage, JobSummary
    from draftsman.questions.question import Question
    from draftsman.runtime import Runtime

MAX_JOBS: Final = 1000
"""Maximum number of jobs in a listing."""
MAX_ERROR_LENGTH: Final = 120
"""Maximum number of characters of an error in a table row."""


@command(
    "jobs",
    section="Jobs",
    examples=(
        "draftsman jobs --status waiting",
        "draftsman jobs D-7 D-10..D-20",
        "draftsman jobs --failures --since 2h",
        "draftsman jobs --since 2026-11-01 --until 'yesterday 9:00'",
        "draftsman jobs --queued --queue nightly",
        "draftsman jobs --mine --tag team=pay --tag nightly --sort -finished",
        "draftsman jobs --type report:weekly --key week-31",
        "draftsman jobs --group release --status failed",
        "draftsman jobs --json | jq '.[].number'",
        "draftsman jobs --status failed --since 1d --count",
    ),
    lists=JOBS,
)
@params.jobs_argument()
@click.option(
    "--status",
    type=params.STATUS_OR_PAUSED,
    multiple=True,
    help="Filter by status; `waiting` matches both waiting statuses, `paused` each paused job.",
)
@click.option("--agent", type=params.AGENT, help="Filter by agent.")
@click.option("--repo", type=params.REPO, help="Filter by repository, ignoring case.")
@click.option("--type", type=params.TEXT, help="Filter by job type.")
@click.option("--queue", type=params.TEXT, help="Filter by queue.")
@click.option("--source", type=params.TEXT, metavar="NAME", help="Filter by source, e.g. slack.")
@click.option("--group", type=params.TEXT, help="Filter by group.")
@click.option("--by", type=params.TEXT, metavar="PERSON", help="Filter by who submitted the job.")
@click.option("--mine", is_flag=True, help="Only jobs that you submitted.")
@click.option(
    "--failures",
    is_flag=True,
    help="Only open failures: neither retried, dismissed, nor denied. Expired jobs are none.",
)
@click.option("--key", type=params.TEXT, help="Filter by idempotency key.")
@click.option(
    "--tag",
    "tags",
    type=params.TEXT,
    multiple=True,
    help="Filter by tag: NAME, or NAME=VALUE; repeatable, a job has all of them.",
)
@params.period_options("Jobs created")
@params.limit_option("jobs", most=MAX_JOBS)
@click.option("--before", type=params.JOB_OF, help="Jobs older than this job.")
@click.option("--queued", is_flag=True, help="Jobs in the order in which workers claim them.")
async def jobs(
    app: App,
    jobs: tuple[JobRef, ...],
    queued: bool,
    status: tuple[tuple[str, ...], ...],
    since: float | None,
    until: float | None,
    before: JobRef | None,
    by: str | None,
    mine: bool,
    **filters: Any,
) -> None:
    """List jobs, newest first.

    Of jobs that are named, such as D-7 D-10..D-20, those that match the filters.

    --where and --sort look at the newest 10,000 jobs that match the other filters; --limit counts
    what they leave.
    """
    if queued:
        other_filters = {name: value for name, value in filters.items() if name != "queue"}
        if jobs or status or since or until or before or by or mine or _has_filters(other_filters):
            raise UsageError("--queued can only be combined with --queue and --limit")
        await print_queued(app, filters["limit"], filters["queue"])
        return
    names = [name for group in status for name in group]
    paused = params.PAUSED in names
    if paused and set(names) != {params.PAUSED}:
        raise UsageError(
            "--status paused cannot be combined with other statuses: paused jobs have any of them"
        )
    statuses = [Status(name) for name in names if name != params.PAUSED] or None
    oldest, newest = params.period(since, until)
    async with app.runtime(read_only=True) as rt:
        cursor = before.number if before else None
        if before and cursor is None:
            cursor = await number_of(rt, before)
        invoker = await _invoker(rt, by, mine=mine)
        if jobs:
            numbers = [await number_of(rt, job) for job in jobs if not job.in_range]
            filters["numbers"] = [*numbers, *(job.number for job in jobs if job.in_range)]
            filters["limit"] = MAX_JOBS
        counts: JobFilters = {**filters, "statuses": statuses, "since": oldest, "until": newest}  # type: ignore[typeddict-item]
        counts |= {"paused": paused, "invoker": invoker}
        limit = filters["limit"]
        page_filters: JobFilters = {**counts, "before": cursor}
        if app.selects:
            page_filters["limit"] = COUNT_LIMIT
        if app.counts:
            print_count(app, await _count(app, rt, counts, page_filters))
            return
        page = await rt.read_model.page(**page_filters)
        now = datetime.now(UTC)
        page_jobs = await rt.read_model.with_figures(page.jobs)
        filters |= {"by": by, "mine": mine, "sort": app.sort, "where": app.where}
        matching = selected(app, JOBS, page_jobs, now)
        shown = matching[:limit]
        if app.json:
            app.out.document([JOBS.data(job) for job in shown])
        elif shown:
            await _show(app, rt, shown)
        options = {"status": ",".join(names), "since": since, "until": until, **filters}
        await _print_rest(app, rt, counts, options, page, len(matching))
        if not shown and page.scanned_to is None:
            unknown = "" if page_jobs else await unknown_value(rt, filters)
            narrowed = bool(since or until or before or _has_filters(filters))
            _print_no_jobs(app, names, unknown, narrowed=narrowed)


@command("why", section="Jobs", examples=("draftsman why D-142", "draftsman why D-142/1"))
@click.argument("job", type=params.JOB_OR_QUESTION)
async def why(app: App, job: tuple[JobRef, int | None]) -> None:
    """Explain why a job is waiting.

    Shows why the job has its current status, and the command that moves it on; of an open question
    also the notifications so far, and the next step of its ladder.
    """
    async with app.runtime(read_only=True) as rt:
        number = await number_of(rt, job[0])
        reason = await rt.read_model.why(number)
        attention = [*(await rt.acknowledgments.attention([number])).values()]
        asked_so_far = (await rt.questions.of_job(number))[0]
    if job[1] is not None and job[1] not in {item.ordinal for item in asked_so_far}:
        raise unknown_question(number, job[1])
    attention = [item for item in attention if job[1] in (None, item.question)]
    if job[1] is not None and not attention:
        raise Refused(f"{question_name(number, job[1])} is not open")
    if app.json:
        first = attention[0] if attention else None
        data = {"attention": first, "questions": attention}
        app.out.document({"number": number} | reason_data(reason) | data)
        return
    if reason.shown_as_paused:
        app.out.print(line(f"{job_name(number)} ", reason.text))
    else:
        app.out.print(line(f"{job_name(number)} ", status_text(reason.status), f": {reason.text}"))
    style = "" if reason.needs else "dim"
    app.out.print(*(styled(f"  {text}", style) for text in reason.next_lines()))
    if not attention:
        return
    from draftsman.jobs.details.sections.questions import attention_lines, note_lines
    from draftsman_tui.common.sections import indented, reader_at

    reader = reader_at()
    by_ordinal = {question.ordinal: question for question in asked_so_far}
    for question in attention:
        lines = [*indented(note_lines(by_ordinal[question.question], reader))]
        lines += indented(attention_lines(question, reader))
        if len(attention) > 1 and lines:
            app.out.print(styled(f"  {question.name}", "bold"))
        app.out.print(*lines)


async def next_steps_of(rt: Runtime, numbers: Sequence[int]) -> dict[int, str]:
    """Return what is next for jobs, by their numbers; of at most `MAX_JOBS`."""
    first = list(numbers[:MAX_JOBS])
    page = await rt.read_model.page(numbers=first, limit=MAX_JOBS) if first else None
    return (
        {} if page is None else await _next_steps(rt, await rt.read_model.with_figures(page.jobs))
    )


async def _next_steps(rt: Runtime, jobs: Sequence[JobSummary]) -> dict[int, str]:
    """Return what is next for jobs: of those that wait for people, the answers."""
    waiting = [job.number for job in jobs if job.status in WAITING]
    open_questions = await rt.questions.open_of(waiting) if waiting else []
    questions_by_job: defaultdict[int, list[Question]] = defaultdict(list)
    for question in open_questions:
        questions_by_job[question.job].append(question)
    now = datetime.now(UTC)
    return {
        job.number: decision_text(job, now) or _next(job, questions_by_job[job.number])
        for job in jobs
    }


async def _invoker(rt: Runtime, by: str | None, *, mine: bool) -> str | None:
    """Return who submitted the jobs to list; raises UsageError for both options."""
    if by and mine:
        raise UsageError("--by and --mine cannot be combined")
    return (await rt.actor()).voter if mine or by == ME else by


async def _show(app: App, rt: Runtime, jobs: Sequence[JobSummary]) -> None:
    """Print a table that names the commands to go on, for which it reads questions."""
    next_steps = await _next_steps(rt, jobs)

    def next_cell(job: JobSummary, _: datetime) -> Cell:
        return cells.text(next_steps[job.number])

    # there is room for a whole status; next are the commands to use, instead of live progress
    entity = JOBS.with_cell("STATUS", lambda job, _: status_of(job, full=True))
    entity = entity.with_cell("NEXT", next_cell)
    print_table(app, entity, jobs, datetime.now(UTC))


def _next(job: JobSummary, questions: Sequence[Question]) -> str:
    """Summarize the reason for waiting, or the last error."""
    if job.job_paused:
        return hold_text(job)
    error = first_line(job.last_error or "", MAX_ERROR_LENGTH)
    match job.status:
        case Status.WAITING_FOR_INPUT | Status.WAITING_FOR_APPROVAL:
            return ", ".join(map(_answer, questions)) or "answer"
        case Status.RETRYING if job.hold:
            return hold_text(job)
        case Status.RETRYING:
            return f"{_retry_count(job)} {times.due(job.due_in)}: {error}"
        case Status.SCHEDULED:
            if job.hold:
                return hold_text(job)
            reason = one_line(job.sleep_reason or "its start time")
            return f"{reason} {times.due(job.due_in)}"
        case Status.QUEUED | Status.RESUMED:
            return hold_text(job)
        case Status.CLAIMED:
            return "a worker to start it"
        case Status.FAILED | Status.DEAD_LETTER:
            return ": ".join(filter(None, (job.closed_text, error)))
        case _:
            return "" if job.status in TERMINAL else "its current run"


def _answer(question: Question) -> str:
    until = question.expires_at
    left = f" {times.until(until)}" if until else ""
    return f"{question.verb} {question.name}{left}"


async def _count(app: App, rt: Runtime, counted: JobFilters, filters: JobFilters) -> int:
    """Return how many jobs match, at most `COUNT_LIMIT` if they have to be read."""
    if not app.where and filters.get("before") is None:
        counts = await rt.read_model.counts(**counted)
        if counts is not None:
            return sum(counts.values())
    count = 0
    now = datetime.now(UTC)
    before = filters.get("before")
    while count < COUNT_LIMIT:
        page_filters: JobFilters = {**filters, "before": before, "limit": MAX_JOBS}
        page = await rt.read_model.page(**page_filters)
        rows = await rt.read_model.with_figures(page.jobs) if app.where else page.jobs
        count += len(selected(app, JOBS, rows, now))
        before = page.jobs[-1].number if len(page.jobs) == MAX_JOBS else page.scanned_to
        if before is None:
            break
    return count


async def _print_rest(
    app: App,
    rt: Runtime,
    counts: JobFilters,
    options: Mapping[str, Any],
    page: JobPage,
    matching: int,
) -> None:
    """Print how many jobs match that are not listed, and the command that lists older ones."""
    limit = options["limit"]
    if app.selects and matching > limit:
        more = f"; for more, use --limit, at most {MAX_JOBS:,}" if limit < MAX_JOBS else ""
        app.out.info(f"{limit:,} of {matching:,} jobs{more}")
    if page.scanned_to is not None:
        older = _older(page.scanned_to, options)
        app.out.info(f"searched back to {job_name(page.scanned_to)}; to search older jobs: {older}")
    elif len(page.jobs) == (COUNT_LIMIT if app.selects else limit):
        older = _older(page.jobs[-1].number, options)
        if app.selects:
            app.out.info(f"{SELECTED_FROM.format('jobs')}; to search older jobs: {older}")
            return
        found = await rt.read_model.counts(**counts)
        if found is None:
            app.out.info(f"there may be more jobs; to list older jobs: {older}")
        elif (total := sum(found.values())) > limit:
            app.out.info(f"{limit:,} of {count_text(total)} jobs; to list older jobs: {older}")


def _older(number: int, options: Mapping[str, Any]) -> str:
    """Return the command that lists jobs older than this job, with the same filters."""
    default = next(param.default for param in jobs.params if param.name == "limit")
    options_set = {name: value for name, value in options.items() if value}
    if options_set.get("limit") == default:
        del options_set["limit"]
    for name in {"since", "until"} & options_set.keys():
        options_set[name] = format_duration(options_set[name])
    arguments = [word for name, value in options_set.items() for word in _words(name, value)]
    return shlex.join(["draftsman", "jobs", *arguments, "--before", job_name(number)])


def _words(name: str, value: Any) -> list[str]:
    """Return an option as words of the command line."""
    if name == "numbers":
        return [job_name(number) for number in value]
    if name in ("tags", "where"):
        return [word for item in value for word in (f"--{name.removesuffix('s')}", item)]
    return [f"--{name}"] if value is True else [f"--{name}", str(value)]


def _retry_count(job: JobSummary) -> str:
    return next_try_of(job.error_class, job).replace(" of ", "/")


def _has_filters(filters: dict[str, Any]) -> bool:
    return any(value for name, value in filters.items() if name not in {"limit", "sort"})


def _print_no_jobs(app: App, statuses: Sequence[str], unknown: str, *, narrowed: bool) -> None:
    if unknown:
        app.out.info(unknown)
    elif app.json:
        return
    elif [*statuses] == [Status.DEAD_LETTER] and not narrowed:
        print_list(app, DEAD_LETTERS, [])
    elif statuses or narrowed:
        app.out.info("no jobs match the filters; to list all jobs: draftsman jobs")
    else:
        print_list(app, JOBS, [])
