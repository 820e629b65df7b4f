"""The `archives` command group: months of events that were moved to files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from draftsman_tui.cli.app import App, ListGroup, command, example_lines
from draftsman_tui.entities.events import missing_months
from draftsman_tui.terminal import times
from draftsman_tui.terminal.output import as_data

if TYPE_CHECKING:
    from draftsman.runtime import Runtime

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group(
    cls=ListGroup,
    name="archives",
    epilog=example_lines(
        ("draftsman archives list", "draftsman archives restore events-2026-01-0f3c….gz")
    ),
)
def archives() -> None:
    """List, check or restore archived events.

    The prune sweep writes a file per month if retention.events is set; see draftsman sweep
    --help.
    """


@command("list", examples=("draftsman archives list",))
async def list_archives(app: App) -> None:
    """List archived months and their files."""
    async with app.runtime(read_only=True) as rt:
        listed = await rt.archives.all()
    if app.json:
        app.out.document(listed)
    elif not listed:
        app.out.info("no events were archived")
    else:
        heads = ("MONTH", "EVENTS", "ARCHIVED", "FILE")
        app.out.table(heads, [_row(archive) for archive in listed], flexible=3, right=(1,))


@command("check", examples=("draftsman archives check events-2026-01-0f3c….gz",))
@click.argument("file", type=FILE)
async def check(app: App, file: Path) -> None:
    """Verify an archive and print its contents."""
    async with app.runtime(read_only=True) as rt:
        archive = await rt.archives.check(file)
    if app.json:
        app.out.document(as_data(archive))
    else:
        app.out.print(f"{file} is valid: {archive.events:,} events of {archive.month:%Y-%m}")


@command("restore", examples=("draftsman archives restore events-2026-01-0f3c….gz",))
@click.argument("file", type=FILE)
async def restore(app: App, file: Path) -> None:
    """Restore an archived month of events.

    The file is verified first and must be the archive of this month. It is not deleted. The next
    prune sweep archives the month again unless the retention is extended.
    """
    async with app.runtime() as rt:
        archive = await rt.archives.restore(file, await rt.actor())
    if app.json:
        app.out.document(as_data(archive))
    else:
        app.out.print(f"restored {archive.events:,} events of {archive.month:%Y-%m}")


for _each in (list_archives, check, restore):
    archives.add_command(_each)


async def print_missing_months(
    app: App, rt: Runtime, job: int | None, after: tuple[int, int, int]
) -> None:
    """Print the archived months that are missing from the event history shown."""
    parts: Sequence[Any]
    parts = await (rt.archives.after(after) if job is None else rt.archives.of_job(job))
    for text in missing_months(parts):
        app.out.info(f"{text}; see: draftsman archives --help")


def _row(archive: Any) -> list[str]:
    file = f"{archive.host}:{archive.path}"
    age = times.ago(archive.archived_at)
    return [f"{archive.month:%Y-%m}", f"{archive.events:,}", age, file]
