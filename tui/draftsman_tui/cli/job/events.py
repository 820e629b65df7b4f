"""The `events` command: event history of jobs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import click

from draftsman.domain.job import TERMINAL
from draftsman.domain.reserved_names import AGENT_KIND, EVENT_KINDS
from draftsman.errors import UsageError
from draftsman_tui.cli.app import App, command, number_of
from draftsman_tui.cli.setup.archives import print_missing_months
from draftsman_tui.common import params
from draftsman_tui.common.output import as_data
from draftsman_tui.common.text.event_text import event_text

if TYPE_CHECKING:
    from draftsman.domain.event import Event
    from draftsman.domain.ids import JobRef
    from draftsman.runtime import Runtime

POLL_INTERVAL = 0.3
"""Seconds between polls with --follow."""
PAGE = 500
Cursor = tuple[int, int, int]


class CursorParam(params.Param):
    """A cursor `epoch.txid.id` as printed by events; a single job also accepts a bare id."""

    name = "cursor"

    def convert(self, value: Any, param: object, ctx: object) -> Cursor:
        """Parse the cursor; raises UsageError."""
        if isinstance(value, tuple):
            return value
        parts = str(value).split(".")
        if len(parts) not in (1, 3) or not all(p.isdecimal() and len(p) < 19 for p in parts):
            raise UsageError(f"invalid cursor {value!r}; use a cursor printed by events --json")
        epoch, txid, id = [0, 0, *map(int, parts)][-3:]
        return epoch, txid, id


@command(
    "events",
    examples=(
        "draftsman events D-142",
        "draftsman events --follow",
        "draftsman events --kind job_failed,job_dead_lettered --since 1d",
        "draftsman events --json --after 1.7342.99 --limit 100",
    ),
)
@click.argument("job", type=params.JOB, required=False)
@click.option("--job", "of_job", type=params.JOB, help="Events of this job; the same as JOB.")
@click.option("-f", "--follow", is_flag=True, help="Stream new events; with a job, until it ends.")
@click.option("--kind", type=params.WORDS, multiple=True, help="Filter by kind, e.g. job_failed.")
@click.option("--since", type=params.DURATION, help="Events of this time, e.g. 2h.")
@click.option("--after", type=CursorParam(), help="Only events after this cursor.")
@click.option(
    "--limit",
    type=click.IntRange(1),
    metavar="N",
    help="Maximum number of events, the oldest first.",
)
async def events(
    app: App,
    job: JobRef | None,
    of_job: JobRef | None,
    follow: bool,
    kind: tuple[tuple[str, ...], ...],
    since: float | None,
    after: Cursor | None,
    limit: int | None,
) -> None:
    """Show the event history, oldest first.

    No event is skipped: to continue, pass the last cursor to --after. Without a job, --follow
    starts with new events unless --after or --since is set.
    """
    if job is not None and of_job is not None:
        raise UsageError("JOB and --job cannot be combined")
    job = job or of_job
    kinds = frozenset(name for names in kind for name in names)
    oldest = datetime.now(UTC) - timedelta(seconds=since) if since else None
    async with app.runtime(read_only=True) as rt:
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
        async with aclosing(stream):
            with app.out.paged(unless=follow):
                async for event in stream:
                    if (kinds and event.kind not in kinds) or (
                        oldest and event.created_at < oldest
                    ):
                        continue
                    count += 1
                    if app.json:
                        app.out.item(as_data(event) | {"cursor": ".".join(map(str, event.cursor))})
                    else:
                        app.out.print(event_text(event, name=job is None), cut=True)
                    if count == limit:
                        break
        if not count:
            app.out.info(_no_events(kinds, narrowed=bool(kinds or since), after=after))


def _no_events(kinds: frozenset[str], *, narrowed: bool, after: Cursor | None) -> str:
    """Return the message without events; it suggests the kind for a misspelled kind."""
    if not narrowed:
        return "no new events" if after else "no events yet"
    unknown = [kind for kind in kinds - EVENT_KINDS if not kind.startswith(AGENT_KIND)]
    near = [get_close_matches(kind, sorted(EVENT_KINDS), 2) for kind in sorted(unknown)]
    hints = " or ".join(name for names in near for name in names)
    return f"no events match the filters{f'; did you mean {hints}?' if hints else ''}"


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
        found, cursor = await rt.read_model.events_of_kinds(sorted(kinds), cursor, PAGE)
        for event in found:
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
