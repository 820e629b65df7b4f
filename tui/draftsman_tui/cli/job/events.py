"""`events` and `logs`: what happened, and what was said while it did."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import click

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

LOOK = 0.3
"""Seconds between two looks when following."""
PAGE = 500
Cursor = tuple[int, int, int]


class CursorParam(params.Param):
    """`epoch.txid.id`, as events show it; one job's events take a bare id too."""

    name = "cursor"

    def convert(self, value: Any, param: object, ctx: object) -> Cursor:
        """Read it; raises UsageError."""
        if isinstance(value, tuple):
            return value
        parts = str(value).split(".")
        if len(parts) not in (1, 3) or not all(p.isdecimal() and len(p) < 19 for p in parts):
            raise UsageError(f"{value!r} is not a cursor; give one that events --json printed")
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
@click.option("-f", "--follow", is_flag=True, help="Go on; of one job until it ends.")
@click.option("--after", type=CursorParam(), help="Only what follows this cursor.")
async def events(app: App, job: JobRef | None, follow: bool, after: Cursor | None) -> None:
    """Show the trail of a job, or of all.

    Nothing is ever skipped: who keeps the last cursor and asks again with --after gets what came
    since. Following everything starts with what is new, unless --after says where.
    """
    async with app.runtime(read_only=True) as rt:
        shown = 0
        if job is None:
            if after is not None and after[:2] == (0, 0) and after[2]:
                raise UsageError("the cursor of everything has three parts: epoch.txid.id")
            if not follow or after is not None:
                await print_missing_months(app, rt, None, after or (0, 0, 0))
            stream = _feed(rt, after, follow)
        else:
            number = await number_of(rt, job)
            await print_missing_months(app, rt, number, (0, 0, 0))
            stream = _trail(rt, number, after[2] if after else 0, follow)
        async for event in stream:
            shown += 1
            if app.json:
                app.out.item(as_data(event) | {"cursor": ".".join(map(str, event.cursor))})
            else:
                app.out.print(event_text(event, name=job is None), cut=True)
        if not shown:
            app.out.info("nothing happened" + (" since" if after else " yet"))


@command("logs", examples=("draftsman logs -f D-142",))
@click.argument("job", type=params.JOB)
@click.option("-f", "--follow", is_flag=True, help="Go on until the job ends.")
async def logs(app: App, job: JobRef, follow: bool) -> None:
    """Print what the runs of a job logged."""
    async with app.runtime(read_only=True) as rt:
        number = await number_of(rt, job)
        run = 0
        async for chunk in _log(rt, number, follow):
            if app.json:
                app.out.item(chunk)
                continue
            if chunk.run != run:
                run = chunk.run
                app.out.info(f"-- run {number}.{run} --")
            app.out.write(plain(chunk.text) if app.out.on_screen else chunk.text)
        if not run and not app.json:
            kept = app.settings.retention.logs
            app.out.info(f"{no_log(number, kept)}; see: draftsman events D-{number}")


async def _trail(rt: Runtime, number: int, after: int, follow: bool) -> AsyncIterator[Event]:
    while True:
        ended = not follow or (await rt.read_model.job(number)).status in TERMINAL
        found = await rt.read_model.job_events(number, after, PAGE)
        for event in found:
            after = event.id
            yield event
        if len(found) < PAGE:
            if ended:
                return
            await asyncio.sleep(LOOK)


async def _feed(rt: Runtime, after: Cursor | None, follow: bool) -> AsyncIterator[Event]:
    if after is None:
        after = await rt.read_model.end_cursor() if follow else (0, 0, 0)
    while True:
        found = await rt.read_model.events(after, PAGE)
        for event in found:
            after = event.cursor
            yield event
        if len(found) < PAGE:
            if not follow:
                return
            await asyncio.sleep(LOOK)


async def _log(rt: Runtime, number: int, follow: bool) -> AsyncIterator[Any]:
    after = (0, 0)
    while True:
        ended = not follow or (await rt.read_model.job(number)).status in TERMINAL
        found = await rt.checkpoints.logs(number, after, PAGE)
        for chunk in found:
            after = (chunk.run, chunk.seq)
            yield chunk
        if len(found) < PAGE:
            if ended:
                return
            await asyncio.sleep(LOOK)
