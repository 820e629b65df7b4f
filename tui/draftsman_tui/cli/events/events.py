"""The `events` command: event history of jobs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from draftsman.actions import maintenance as actions
from draftsman.errors import UsageError
from draftsman.formats import times
from draftsman.formats.json_data import as_data
from draftsman.formats.near_names import did_you_mean
from draftsman.jobs.details.sections.events import missing_months
from draftsman.jobs.event_kinds import AGENT_KIND, COMMON_KINDS, EVENTS
from draftsman.jobs.job import TERMINAL
from draftsman_tui.cli.app import App, ListGroup, command, command_group, number_of
from draftsman_tui.cli.perform import perform
from draftsman_tui.common.events import event_details, event_text
from draftsman_tui.common.sections import reader_at
from draftsman_tui.terminal import params

if TYPE_CHECKING:
    from draftsman.events.event import Event
    from draftsman.ids import JobRef
    from draftsman.runtime import Runtime


FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@command_group(
    "archives",
    section="Setup",
    cls=ListGroup,
    examples=("draftsman archives list", "draftsman archives restore events-2026-01-0f3c….gz"),
)
def archives() -> None:
    """List, check or restore archived events.

    The prune sweep writes a file per month if retention.events is set; see draftsman sweep
    --help.
    """


@archives.subcommand("list", examples=("draftsman archives list",))
async def list_archives(app: App) -> None:
    """List archived months and their files."""
    async with app.runtime(read_only=True) as rt:
        stored_archives = await rt.archives.all()
    if app.json:
        app.out.document(stored_archives)
    elif not stored_archives:
        app.out.info("no events were archived")
    else:
        heads = ("MONTH", "EVENTS", "ARCHIVED", "FILE")
        app.out.table(heads, [_row(archive) for archive in stored_archives], flexible=3, right=(1,))


@archives.subcommand("check", examples=("draftsman archives check events-2026-01-0f3c….gz",))
@click.argument("file", type=FILE)
async def check(app: App, file: Path) -> None:
    """Verify an archive and print its contents."""
    async with app.runtime(read_only=True) as rt:
        archive = await rt.archives.check(file)
    app.out.result(as_data(archive), f"{file} is valid: {actions.archived(archive)}")


@archives.subcommand(
    "restore",
    examples=("draftsman archives restore events-2026-01-0f3c….gz",),
    does=(actions.restore,),
)
@click.argument("file", type=FILE)
async def restore(app: App, file: Path) -> None:
    """Restore an archived month of events.

    The file is verified first and must be the archive of this month. It is not deleted. The next
    prune sweep archives the month again unless the retention is extended.
    """
    await perform(app, actions.restore, file)


async def print_missing_months(
    app: App, rt: Runtime, job: int | None, after: tuple[int, int, int]
) -> None:
    """Print the archived months that are missing from the event history shown."""
    archived: Sequence[Any]
    archived = await (rt.archives.after(after) if job is None else rt.archives.of_job(job))
    for text in missing_months(archived):
        app.out.info(f"{text}; see: draftsman archives --help")


def _row(archive: Any) -> list[str]:
    file = f"{archive.host}:{archive.path}"
    age = times.ago(archive.archived_at)
    return [f"{archive.month:%Y-%m}", f"{archive.events:,}", age, file]


POLL_INTERVAL = 0.3
"""Seconds between polls with --follow."""
PAGE = 500
KINDS = ", ".join(sorted(EVENTS))
ALL = 1_000_000
"""Above the number of events of a job, which its quota limits."""
Cursor = tuple[int, int, int]
Period = tuple[datetime | None, datetime | None]
CLOCK_DIFFERENCE: Final = timedelta(hours=1)
"""By how much events may not be in the order of their times."""


KINDS_PARAM: Final = params.Parsed(
    "kinds",
    params.words,
    params.last_word({kind: EVENTS[kind].text for kind in sorted(EVENTS)}),
)


def _cursor(text: str) -> Cursor:
    """Parse a cursor `epoch.txid.id` as printed by events; a single job also accepts a bare id."""
    numbers = text.split(".")
    if len(numbers) not in (1, 3) or not all(
        number.isdecimal() and len(number) < 19 for number in numbers
    ):
        raise UsageError(f"invalid cursor {text!r}; use a cursor printed by events --json")
    epoch, txid, id = [0, 0, *map(int, numbers)][-3:]
    return epoch, txid, id


@command(
    "events",
    section="Jobs",
    examples=(
        "draftsman events D-142",
        "draftsman events --follow",
        "draftsman events --kind job_failed,job_dead_lettered --since 1d",
        "draftsman events --json --after 1.7342.99 --limit 100",
    ),
)
@click.argument("job", type=params.JOB_OF, required=False)
@click.option("--job", "of_job", type=params.JOB_OF, help="Events of this job; the same as JOB.")
@click.option("--details", is_flag=True, help="Show the kind, the actor and all values of each.")
@click.option("-f", "--follow", is_flag=True, help="Stream new events; with a job, until it ends.")
@click.option("--kind", type=KINDS_PARAM, multiple=True, help="Filter by kind, e.g. job_failed.")
@params.period_options("Events")
@click.option(
    "--after", type=params.Parsed("cursor", _cursor), help="Only events after this cursor."
)
@click.option(
    "--limit",
    type=params.COUNT,
    metavar="N",
    help="Only the newest N events; with --after or --follow the first N.",
)
async def events(
    app: App,
    job: JobRef | None,
    of_job: JobRef | None,
    details: bool,
    follow: bool,
    kind: tuple[tuple[str, ...], ...],
    since: float | None,
    until: float | None,
    after: Cursor | None,
    limit: int | None,
) -> None:
    """Show the event history, oldest first.

    To continue without a gap, pass the last cursor to --after. Without a job, --follow starts with
    new events unless --after or --since is set. --limit shows the newest events.
    """
    if job is not None and of_job is not None:
        raise UsageError("JOB and --job cannot be combined")
    job = job or of_job
    kinds = frozenset(name for names in kind for name in names)
    newest = limit if limit is not None and after is None and not follow else None
    oldest, _ = period = _period(since, until, follow=follow)
    async with app.runtime(read_only=True) as rt:
        await _check_kinds(app, rt, kinds, follow=follow)
        count = 0
        if job is None:
            if after is not None and after[:2] == (0, 0) and after[2]:
                raise UsageError("without a job, --after requires a full cursor: epoch.txid.id")
            if oldest is not None:
                after = max(after or (0, 0, 0), await rt.read_model.cursor_before(oldest))
            if not follow or after is not None:
                await print_missing_months(app, rt, None, after or (0, 0, 0))
            stream = _all_events(rt, after, follow, kinds)
        else:
            number = await number_of(rt, job)
            await print_missing_months(app, rt, number, (0, 0, 0))
            stream = _job_events(rt, number, after[2] if after else 0, follow)
        if newest is not None:
            stream = _newest(rt, None if job is None else number, newest, kinds, period)
        async with aclosing(stream):
            with app.out.paged(unless=follow):
                async for event in stream:
                    if _is_over(event, period):
                        break
                    if not _matches(event, kinds, period):
                        continue
                    count += 1
                    _print(app, rt, event, names_job=job is None, details=details)
                    if count == limit:
                        break
        if not count:
            app.out.info(_no_events(narrowed=bool(kinds or since or until), after=after))


def _print(app: App, rt: Runtime, event: Event, *, names_job: bool, details: bool) -> None:
    if app.json:
        app.out.item(as_data(event) | {"cursor": ".".join(map(str, event.cursor))})
        return
    app.out.print(event_text(event, reader_at(policy=rt.policy), name=names_job), cut=True)
    if details:
        app.out.print(*event_details(event))


def _period(since: float | None, until: float | None, *, follow: bool) -> Period:
    if follow and until:
        raise UsageError("--follow has no end, so it cannot be combined with --until")
    return params.period(since, until)


def _is_over(event: Event, period: Period) -> bool:
    """Return whether all later events are after the period."""
    return period[1] is not None and event.created_at > period[1] + CLOCK_DIFFERENCE


def _matches(event: Event, kinds: frozenset[str], period: Period) -> bool:
    oldest, latest = period
    return (
        (not kinds or event.kind in kinds)
        and (oldest is None or event.created_at >= oldest)
        and (latest is None or event.created_at < latest)
    )


async def _check_kinds(app: App, rt: Runtime, kinds: frozenset[str], *, follow: bool) -> None:
    """Raise UsageError for a kind that no event has; --follow may wait for that of a handler."""
    for kind in sorted(kinds - EVENTS.keys()):
        if kind.startswith(AGENT_KIND) or (await rt.read_model.events_of_kinds([kind], limit=1))[0]:
            continue
        hint = did_you_mean(kind, sorted(EVENTS)) or f"; kinds: {KINDS}"
        if not follow:
            raise UsageError(f"no event has the kind {kind!r}{hint}")
        app.out.info(f"no event has had the kind {kind!r} so far{hint}")


def _no_events(*, narrowed: bool, after: Cursor | None) -> str:
    """Return the message without events."""
    if not narrowed:
        return "no new events" if after else "no events yet"
    return "no events match the filters"


async def _newest(
    rt: Runtime, number: int | None, limit: int, kinds: frozenset[str], period: Period
) -> AsyncGenerator[Event, None]:
    """Yield the newest events that match, the oldest of them first."""
    if number is None and kinds and COMMON_KINDS.isdisjoint(kinds):
        events = _all_events(rt, None, False, kinds)
        matching = [event async for event in events if _matches(event, kinds, period)]
        newest = matching[-limit:]
    else:
        newest = (await _backwards(rt, number, limit, kinds, period))[::-1]
    for event in newest:
        yield event


async def _backwards(
    rt: Runtime, number: int | None, limit: int, kinds: frozenset[str], period: Period
) -> list[Event]:
    """Return the newest events that match, the newest first."""
    if number is not None:
        of_job = await rt.read_model.latest_job_events(number, limit=ALL)
        return [event for event in reversed(of_job) if _matches(event, kinds, period)][:limit]
    matching: list[Event] = []
    oldest = period[0]
    before: Cursor | None = None
    while len(matching) < limit:
        read = await rt.read_model.latest_events(before, PAGE)
        matching += [event for event in read if _matches(event, kinds, period)]
        if len(read) < PAGE or (oldest and read[-1].created_at < oldest):
            break
        before = read[-1].cursor
    return matching[:limit]


async def _job_events(
    rt: Runtime, number: int, after: int, follow: bool
) -> AsyncGenerator[Event, None]:
    while True:
        ended = not follow or (await rt.read_model.job(number)).status in TERMINAL
        page = await rt.read_model.job_events(number, after, PAGE)
        for event in page:
            after = event.id
            yield event
        if len(page) < PAGE:
            if ended:
                return
            await asyncio.sleep(POLL_INTERVAL)


async def _all_events(
    rt: Runtime, after: Cursor | None, follow: bool, kinds: frozenset[str]
) -> AsyncGenerator[Event, None]:
    """Yield the events of all jobs; with `kinds`, others may be left out."""
    if after is None:
        after = await rt.read_model.end_cursor() if follow else (0, 0, 0)
    cursor: Cursor | None = after
    while kinds and not follow and cursor is not None:
        page, cursor = await rt.read_model.events_of_kinds(sorted(kinds), cursor, PAGE)
        for event in page:
            yield event
    while not kinds or follow:
        page = await rt.read_model.events(after, PAGE)
        for event in page:
            after = event.cursor
            yield event
        if len(page) < PAGE:
            if not follow:
                return
            await asyncio.sleep(POLL_INTERVAL)
