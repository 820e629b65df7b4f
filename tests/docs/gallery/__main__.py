"""Takes the gallery of docs/dashboard.md: each screen of the real dashboard, with a team's jobs.

python -m tests.docs.gallery [--png FOLDER [--theme dark|light|contrast|none]]

With `--png`, the pictures of a theme are written to a folder instead, as PNG (rsvg-convert).
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import subprocess
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Final

from draftsman.runtime import Runtime, open_runtime
from draftsman.settings import load
from draftsman_testing.factories import Factory
from draftsman_tui.dashboard.views import VIEWS
from tests.docs.gallery.resources import heartbeats
from tests.docs.gallery.team import QUESTIONS, Team
from tests.docs.pages import DOCS
from tests.docs.pictures import ANNA, clock_at
from tests.support.server import Server, make_home
from tests.support.svg import render_svg
from tests.tui.dashboard.pilot import DashboardPilot, open_dashboard

PLACE: Final = DOCS / "pictures" / "gallery"
SIZE: Final = (140, 40)
NARROW: Final = (80, 24)
Keep = Callable[[str, DashboardPilot], None]
Story = Callable[[DashboardPilot, Keep], Awaitable[None]]


async def tables(seen: DashboardPilot, keep: Keep) -> None:
    """Show each table."""
    for name, view in VIEWS.items():
        await seen.command(name)
        await seen.until(lambda name=name: f" {name} · " in seen.lines[2])  # type: ignore[misc]
        await seen.until(lambda: "loading" not in seen.lines[2])
        if view.empty_text(supervised=False) not in seen.text and view.has_jobs:
            await seen.see("Newest events")
        keep(name, seen)


async def inbox(seen: DashboardPilot, keep: Keep) -> None:
    """Group and fold the inbox, and review it."""
    await seen.command("inbox")
    await seen.see(f" · {QUESTIONS} jobs", "Newest events")
    await seen.press("b")
    await seen.see("▾ acme/site")
    keep("inbox-grouped", seen)
    await seen.press("minus")
    await seen.see("▸ acme/site")
    keep("inbox-folded", seen)
    await seen.command("group-by none")
    await seen.press("A")
    await seen.see("1 of ")
    keep("review-question", seen)
    await seen.press("s")
    await seen.see("2 of ")
    await seen.press("ctrl+n")
    await seen.see("3 of ", "prices.py")
    keep("review-approval", seen)
    await seen.press("escape")
    await seen.dialog("MainScreen")
    await seen.command("filter bogus:1")
    await seen.see("unknown field")
    keep("filter-error", seen)
    await seen.press("escape")


async def job(seen: DashboardPilot, keep: Keep, name: str) -> None:
    """Show each tab of a job."""
    await seen.job(name)
    tabs = ("timeline", "request", "log", "diff", "questions")
    for nth, tab in enumerate(tabs, 1):
        if nth > 1:
            await seen.press(str(nth))
        await seen.see(f"{name} · {tab}")
        keep(f"job-{tab}", seen)
    for key, tab in (("7", "runs"), ("8", "usage"), ("9", "related"), ("0", "artifacts")):
        await seen.press(key)
        await seen.see(f"{name} · {tab}")
        keep(f"job-{tab}", seen)
    await seen.press("escape")
    await seen.dialog("MainScreen")


async def dialogs(seen: DashboardPilot, keep: Keep) -> None:
    """Show help, the palette and other dialogs."""
    await seen.command("jobs")
    for key, dialog, name in (
        ("question_mark", "HelpDialog", "help"),
        ("s", "ChoiceDialog", "sort"),
        ("c", "ConfirmDialog", "confirm"),
        ("n", "NewJobDialog", "new-job"),
        ("ctrl+p", "CommandPalette", "palette"),
    ):
        await seen.press(key)
        await seen.dialog(dialog)
        await seen.pilot.pause(0.3)
        keep(name, seen)
        await seen.press("escape")
        await seen.dialog("MainScreen")


async def take(config: Path, keep: Keep, theme: str) -> None:
    """Fill the database, and take each picture."""
    async with open_runtime(load(config)) as rt:
        make = Factory(rt, ANNA)
        team = Team(make)
        await team.fill()
        stories: list[Story] = [tables, inbox, partial(job, name=f"D-{team.long}"), dialogs]
        async with heartbeats(make):
            with clock_at(await rt.checkpoints.now()):
                for story in stories:
                    await _tell(rt, story, keep, theme)


async def _tell(rt: Runtime, story: Story, keep: Keep, theme: str) -> None:
    async with open_dashboard(rt, ANNA, size=SIZE) as seen:
        seen.app.theme = theme
        await seen.see("needs a person", "for you")
        await story(seen, keep)
        if story is tables:
            await seen.pilot.resize_terminal(*NARROW)
            for name in ("jobs", "inbox"):
                await seen.command(name)
                await seen.until(lambda name=name: f" {name} · " in seen.lines[2])  # type: ignore[misc]
                keep(f"{name}-narrow", seen)


def write_svg(name: str, seen: DashboardPilot) -> None:
    """Write a picture of the page."""
    svg = render_svg(seen.app, f"draftsman: {name}")
    (PLACE / f"{name}.svg").write_text(svg, "utf-8")


def png_writer(folder: Path) -> Keep:
    """Return a function that writes PNG files to a folder; exits without the program for them."""
    if shutil.which("rsvg-convert") is None:
        raise SystemExit("--png needs rsvg-convert; install it, as with: apt install librsvg2-bin")
    folder.mkdir(parents=True, exist_ok=True)

    def keep(name: str, seen: DashboardPilot) -> None:
        svg = render_svg(seen.app, name).encode()
        target = folder / f"{name}.png"
        subprocess.run(["rsvg-convert", "-w", "1400", "-o", target], input=svg, check=True)

    return keep


def main() -> None:
    """Take all pictures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--png", type=Path)
    parser.add_argument("--theme", default="dark")
    given = parser.parse_args()
    home = make_home()
    server = Server(home, None)
    try:
        config = home / "draftsman.toml"
        url = server.url(server.create())
        data = home / "data"
        values = f'database_url = "{url}"\ndata_dir = "{data}"\n'
        config.write_text(f'{values}people.carol.roles = ["approver"]\n', "utf-8")
        PLACE.mkdir(exist_ok=True)
        keep = write_svg if given.png is None else png_writer(given.png)
        asyncio.run(take(config, keep, given.theme))
    finally:
        server.end()
    sys.stdout.write(f"{given.png or PLACE}\n")


if __name__ == "__main__":
    main()
