"""`dashboard`: everything, live, on a terminal or in a browser."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

import click

from draftsman.errors import UsageError
from draftsman_tui.cli.app import App, command
from draftsman_tui.cli.process.process_setup import child, set_up_log
from draftsman_tui.common import extras, stdio

if TYPE_CHECKING:
    from draftsman.runtime import Runtime
    from draftsman_tui.dashboard.app import Dashboard
    from draftsman_tui.dashboard.supervised import SupervisedProcesses

PORT: Final = 8420
IN_BROWSER: Final = "textual.drivers.web_driver:WebDriver"
"""What TEXTUAL_DRIVER says where textual-serve stands between us and a browser."""


class LazyChoice(click.Choice[str]):
    """One of the names that the dashboard has for something; it is loaded when one is needed."""

    def __init__(self, load: Callable[[], Sequence[str]]) -> None:
        self.case_sensitive = True
        self._load = load

    @cached_property
    def choices(self) -> Sequence[str]:  # type: ignore[override]
        """The names."""
        return tuple(self._load())


def _themes() -> Sequence[str]:
    from draftsman_tui.dashboard.themes import NAMES

    return NAMES


@command(
    "dashboard",
    examples=(
        "draftsman dashboard --view inbox",
        "draftsman dashboard --read-only --theme light",
        "draftsman dashboard --web --open",
    ),
    long_running=True,
)
@click.option("--read-only", is_flag=True, help="Change nothing; the database sees to it.")
@click.option("--view", metavar="NAME", help="The table or the saved view that comes first.")
@click.option("--theme", type=LazyChoice(_themes), help="Its colours.")
@click.option("--web", is_flag=True, help="Serve it to a browser on this machine.")
@click.option(
    "--port", type=click.IntRange(0, 65535), help=f"Where --web listens; 0: anywhere.  [{PORT}]"
)
@click.option("--open", "opens", is_flag=True, help="Open the browser on what --web serves.")
@click.option("--parent", type=int, hidden=True)
async def dashboard(
    app: App,
    read_only: bool,
    view: str | None,
    theme: str | None,
    web: bool,
    port: int | None,
    opens: bool,
    parent: int | None,
) -> None:
    """Look at everything live, and do it from there.

    The keys are in the last line; ? lists all of them, : takes a command by its name, / filters.
    `draftsman` alone, on a terminal, is the same. With --web it prints an address for a browser on
    this machine, and lives until Ctrl-C; each tab is a dashboard of its own.
    """
    if app.json:
        raise UsageError("the dashboard prints no JSON; see: draftsman jobs --json")
    extras.require("tui")
    from draftsman_tui.dashboard.launch_options import resolve_options

    resolve_options(
        app.settings.dashboard, view, theme
    )  # what is wrong is said before anything starts
    if web:
        given = {"--view": view, "--theme": theme}
        options = [part for name, one in given.items() if one for part in (name, one)]
        options += ["--read-only"] if read_only else []
        await _serve(app, options, PORT if port is None else port, opens=opens)
        return
    if port is not None or opens:
        raise UsageError(f"{'--open' if opens else '--port'} goes with --web")
    if os.environ.get("TEXTUAL_DRIVER") != IN_BROWSER:
        _needs_a_terminal()
    from draftsman.shutdown import shutdown_signals

    code = None
    async with shutdown_signals(parent) as signals, app.runtime(read_only=read_only) as rt:
        shown = await create_dashboard(app, rt, read_only=read_only, view=view, theme=theme)
        # Textual would write to a terminal that is gone, and wait for ever for that to be done
        with signals.handled_by(lambda _: shown.exit()), signals.left_to_kernel(signal.SIGHUP):
            await shown.run_async()
        code = shown.return_code
    if code:
        raise click.exceptions.Exit(code)


async def create_dashboard(
    app: App,
    rt: Runtime,
    *,
    read_only: bool = False,
    view: str | None = None,
    theme: str | None = None,
    started: SupervisedProcesses | None = None,
) -> Dashboard:
    """Return a dashboard for whoever runs this process; raises ConfigError, UsageError."""
    if app.out.colour is False or os.environ.get("NO_COLOR"):
        theme = "none"  # by itself Textual would make greys of all colours
    from draftsman.domain.job import Source
    from draftsman_tui.dashboard.app import Dashboard
    from draftsman_tui.dashboard.launch_options import resolve_options

    start = resolve_options(app.settings.dashboard, view, theme)
    actor = await rt.actor(Source.TUI)
    return Dashboard(rt, actor, start, read_only=read_only, started=started)


def check(app: App) -> None:
    """Raise ConfigError where the configuration of the dashboard cannot be."""
    from draftsman_tui.dashboard.launch_options import resolve_options

    resolve_options(app.settings.dashboard)


def is_available() -> bool:
    """Return whether there are a screen and what draws on it."""
    return stdio.is_screen() and extras.missing("tui") is None


def _needs_a_terminal() -> None:
    if stdio.is_screen():
        return
    what = (
        f"this terminal (TERM={os.environ['TERM']}) cannot show the dashboard"
        if os.environ.get("TERM") in stdio.DUMB
        else "the dashboard needs a terminal"
    )
    raise UsageError(f"{what}; see: draftsman jobs, draftsman questions")


async def _serve(app: App, options: Sequence[str], port: int, *, opens: bool) -> None:
    from draftsman.shutdown import shutdown_signals

    async with shutdown_signals() as signals:
        async with app.runtime(read_only=True):
            pass  # what is wrong is said here, and not in the browser
        set_up_log(app)
        from draftsman_tui.dashboard.web.server import Web

        colour = ["--no-color"] if app.colour is False else []
        dashboard = [*child(app, "dashboard"), *colour, *options, "--parent", str(os.getpid())]
        web = Web(dashboard, port)
        async with web.serving() as address:
            with signals.handled_by(lambda _: web.stop()):
                app.out.print(address)
                app.out.info("whoever opens this address acts as you; Ctrl-C ends it")
                if opens:
                    web.open_browser()
                await web.stopped.wait()
