"""The `events` and `logs` commands: event history and run logs of jobs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import click

from draftsman.domain.ids import job_name
from draftsman.domain.job import TERMINAL
from draftsman.errors import UsageError
from draftsman_tui.cli.app import App, command, number_of
from draftsman_tui.cli.setup.archives import print_missing_months
from draftsman_tui.common import params
from draftsman_tui.common.event_text import event_text, no_log
from draftsman_tui.common.output import as_data, plain

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
        "draftsman events --json --after 1.7342.99",
    ),
)
@click.argument("job", type=params.JOB, required=False)
@click.option("-f", "--follow", is_flag=True, help="Stream new events; with a job, until it ends.")
@click.option("--after", type=CursorParam(), help="Only events after this cursor.")
async def events(app: App, job: JobRef | None, follow: bool, after: Cursor | None) -> None:
    """Show the event history.

    No event is skipped: to continue, pass the last cursor to --after. Without a job, --follow
    starts with new events unless --after is set.
    """
    async with app.runtime(read_only=True) as rt:
        count = 0
        if job is None:
            if after is not None and after[:2] == (0, 0) and after[2]:
                raise UsageError("without a job, --after requires a full cursor: epoch.txid.id")
            if not follow or after is not None:
                await print_missing_months(app, rt, None, after or (0, 0, 0))
            stream = _all_events(rt, after, follow)
        else:
            number = await number_of(rt, job)
            await print_missing_months(app, rt, number, (0, 0, 0))
            stream = _job_events(rt, number, after[2] if after else 0, follow)
        async for event in stream:
            count += 1
            if app.json:
                app.out.item(as_data(event) | {"cursor": ".".join(map(str, event.cursor))})
            else:
                app.out.print(event_text(event, name=job is None), cut=True)
        if not count:
            app.out.info("no new events" if after else "no events yet")


@command("logs", examples=("draftsman logs -f D-142",))
@click.argument("job", type=params.JOB)
@click.option("-f", "--follow", is_flag=True, help="Stream new output until the job ends.")
async def logs(app: App, job: JobRef, follow: bool) -> None:
    """Print the logs of a job."""
    async with app.runtime(read_only=True) as rt:
        number = await number_of(rt, job)
        run = 0
        async for chunk in _log_chunks(rt, number, follow):
            if app.json:
                app.out.item(chunk)
                continue
            if chunk.run != run:
                run = chunk.run
                app.out.info(f"-- run {number}.{run} --")
            app.out.write(plain(chunk.text) if app.out.on_screen else chunk.text)
        if not run and not app.json:
            retention = rt.settings.retention.logs
            app.out.info(f"{no_log(number, retention)}; see: draftsman events {job_name(number)}")


async def _job_events(rt: Runtime, number: int, after: int, follow: bool) -> AsyncIterator[Event]:
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


async def _all_events(rt: Runtime, after: Cursor | None, follow: bool) -> AsyncIterator[Event]:
    if after is None:
        after = await rt.read_model.end_cursor() if follow else (0, 0, 0)
    while True:
        page = await rt.read_model.events(after, PAGE)
        for event in page:
            after = event.cursor
            yield event
        if len(page) < PAGE:
            if not follow:
                return
            await asyncio.sleep(POLL_INTERVAL)


async def _log_chunks(rt: Runtime, number: int, follow: bool) -> AsyncIterator[Any]:
    after = (0, 0)
    while True:
        ended = not follow or (await rt.read_model.job(number)).status in TERMINAL
        page = await rt.checkpoints.logs(number, after, PAGE)
        for chunk in page:
            after = (chunk.run, chunk.seq)
            yield chunk
        if len(page) < PAGE:
            if ended:
                return
            await asyncio.sleep(POLL_INTERVAL)
