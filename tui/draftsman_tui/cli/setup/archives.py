"""`archives`: months of the trail that left the database, as files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from draftsman_tui.cli.app import App, Group, command, example_lines
from draftsman_tui.common import times
from draftsman_tui.common.event_text import missing_months
from draftsman_tui.common.output import as_data

if TYPE_CHECKING:
    from draftsman.runtime import Runtime

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group(
    cls=Group,
    name="archives",
    epilog=example_lines(
        ("draftsman archives list", "draftsman archives restore events-2026-01-0f3c….gz")
    ),
)
def archives() -> None:
    """List, check or restore months of the trail that were pruned.

    The sweep `prune` makes them, when retention.events is set; see: draftsman sweep --help
    """


@command("list", examples=("draftsman archives list",))
async def list_archives(app: App) -> None:
    """List the months that left the database, and their files."""
    async with app.runtime(read_only=True) as rt:
        found = await rt.archives.all()
    if app.json:
        app.out.document(found)
    elif not found:
        app.out.info("no month of the trail was pruned")
    else:
        heads = ("MONTH", "EVENTS", "PRUNED", "FILE")
        app.out.table(heads, [_row(one) for one in found], flexible=3, right=(1,))


@command("check", examples=("draftsman archives check events-2026-01-0f3c….gz",))
@click.argument("file", type=FILE)
async def check(app: App, file: Path) -> None:
    """Read an archive whole, and say what it holds."""
    async with app.runtime(read_only=True) as rt:
        found = await rt.archives.check(file)
    if app.json:
        app.out.document(as_data(found))
    else:
        app.out.print(f"{file} is whole: {found.events:,} events of {found.month:%Y-%m}")


@command("restore", examples=("draftsman archives restore events-2026-01-0f3c….gz",))
@click.argument("file", type=FILE)
async def restore(app: App, file: Path) -> None:
    """Bring an archived month back into the trail, as it was.

    The file is read whole before anything changes, and has to be the one that was made of this
    month. It stays. With the same retention the month is pruned again by and by.
    """
    async with app.runtime() as rt:
        found = await rt.archives.restore(file, await rt.actor())
    if app.json:
        app.out.document(as_data(found))
    else:
        app.out.print(f"restored {found.events:,} events of {found.month:%Y-%m}")


for _each in (list_archives, check, restore):
    archives.add_command(_each)


async def print_missing_months(
    app: App, rt: Runtime, job: int | None, after: tuple[int, int, int]
) -> None:
    """Say what the trail of a job, or of all after a cursor, would show but for the pruning."""
    found: Sequence[Any]
    found = await (rt.archives.after(after) if job is None else rt.archives.of_job(job))
    for text in missing_months(found):
        app.out.info(f"{text}; see: draftsman archives --help")


def _row(one: Any) -> list[str]:
    where = f"{one.host}:{one.path}"
    return [f"{one.month:%Y-%m}", f"{one.events:,}", times.ago(one.archived_at), where]
