"""`dashboard`: everything, live, on a terminal."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import Final

import click

from draftsman.domain.job import Source
from draftsman.errors import ConfigError, UsageError
from draftsman_tui.cli.app import App, command

THEMES: Final = ("dark", "light", "contrast", "none")


@command(
    "dashboard",
    examples=(
        "draftsman dashboard --view inbox",
        "draftsman dashboard --read-only --theme light",
    ),
)
@click.option("--read-only", is_flag=True, help="Change nothing; the database sees to it.")
@click.option("--view", metavar="NAME", help="The table or the saved view that comes first.")
@click.option("--theme", type=click.Choice(THEMES), help="Its colours.")
async def dashboard(app: App, read_only: bool, view: str | None, theme: str | None) -> None:
    """Look at everything live, and do it from there.

    The keys are in the last line; ? lists all of them, : takes a command by its name, / filters.
    `draftsman` alone, on a terminal, is the same.
    """
    if app.json:
        raise UsageError("the dashboard prints no JSON; see: draftsman jobs --json")
    if find_spec("textual") is None:
        raise ConfigError("Textual is not installed; run: pip install 'draftsman[tui]'")
    if not app.out.interactive or not app.out.on_screen:
        raise UsageError("the dashboard needs a terminal; see: draftsman jobs, draftsman questions")
    if os.environ.get("TERM", "dumb") == "dumb":
        raise UsageError("the dashboard needs a terminal that can move its cursor; TERM is dumb")
    unwanted = os.environ.pop("NO_COLOR", "")  # Textual would make greys of all colours
    if unwanted or app.out.colour is False:
        theme = "none"
    from draftsman_tui.dashboard.start import begin

    start = begin(app.settings.dashboard, view, theme)
    async with app.runtime(read_only=read_only) as rt:
        from draftsman_tui.dashboard.app import Dashboard

        actor = await rt.actor(Source.TUI)
        await Dashboard(rt, actor, start, read_only=read_only).run_async()
