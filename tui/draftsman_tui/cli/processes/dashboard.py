"""The `dashboard` command: the live dashboard on a terminal or in a browser."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, nullcontext
from dataclasses import replace
from datetime import UTC
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import click

from draftsman.errors import UsageError
from draftsman.formats.shown_zone import SHOWN_ZONE, local_zone
from draftsman_tui.cli.app import App, command
from draftsman_tui.cli.processes.process_setup import child, set_up_log
from draftsman_tui.dashboard.themes import NAMES
from draftsman_tui.terminal import extras, params, stdio

if TYPE_CHECKING:
    from draftsman.people.actor import Actor
    from draftsman.processes.shutdown import ShutdownSignals
    from draftsman.runtime import Runtime
    from draftsman.settings import Settings
    from draftsman_tui.dashboard.app import Dashboard
    from draftsman_tui.dashboard.frame.connection import Connect
    from draftsman_tui.dashboard.worker.supervised import SupervisedProcesses

ENTER: Final = "\x1b[?1049h\x1b[?25l\x1b[2J\x1b[H"
LEAVE: Final = "\x1b[?25h\x1b[?1049l"
"""Alternate screen and cursor (xterm, "Functions using CSI"), as the dashboard sets them."""


@contextlib.contextmanager
def first_frame() -> Iterator[None]:
    """Show the frame of an empty dashboard; an error restores the screen, and is printed there."""
    columns, rows = shutil.get_terminal_size()
    _write(f"{ENTER}  draftsman\r\n{'─' * columns}\r\n  Starting …\x1b[{rows};1H  ? help  q quit")
    try:
        yield
    except BaseException:
        _write(LEAVE)
        raise


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


@contextlib.contextmanager
def ending(signals: ShutdownSignals) -> Iterator[None]:
    """Let a hangup of the terminal end the process, since Textual blocks on a lost terminal.

    A terminal that does not control the process hangs up without SIGHUP. Textual would then read
    the end of its input again and again.
    """
    with signals.left_to_kernel(signal.SIGHUP):
        if not stdio.is_terminal(sys.stdin):  # the dashboard of a browser
            yield
            return
        stopped, stop = os.pipe()
        watch = threading.Thread(target=_watch, args=(sys.stdin.fileno(), stopped), daemon=True)
        watch.start()
        try:
            with _restored_job_control():
                yield
        finally:
            os.close(stop)
            watch.join()
            os.close(stopped)


def has_happened() -> bool:
    """Return whether the terminal of standard input is gone."""
    waiting = select.poll()
    waiting.register(sys.stdin.fileno(), 0)  # hangups only
    return bool(waiting.poll(0))


@contextlib.contextmanager
def _restored_job_control() -> Iterator[None]:
    """Restore the handlers that Textual replaces and keeps, after the block.

    A hangup continues the process. The handler of a dashboard that has ended would then show it
    again, and its thread would read the end of the input again and again.
    """
    before = {number: signal.getsignal(number) for number in (signal.SIGTSTP, signal.SIGCONT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _watch(terminal: int, stopped: int) -> None:
    """Wait for the end of the block or of the terminal; end the process with its terminal."""
    waiting = select.poll()
    waiting.register(terminal, 0)  # hangups only
    waiting.register(stopped, select.POLLIN)
    if any(ready == terminal for ready, _ in waiting.poll()):
        os.kill(os.getpid(), signal.SIGHUP)
        os._exit(128 + signal.SIGHUP)  # SIGHUP is ignored, as after `nohup`


PORT: Final = 8420
IN_BROWSER: Final = "textual.drivers.web_driver:WebDriver"
"""Value of TEXTUAL_DRIVER in the processes that textual-serve starts."""


@command(
    "dashboard",
    section="Processes",
    examples=(
        "draftsman dashboard --view inbox",
        "draftsman dashboard --read-only --theme light",
        "draftsman dashboard --web --open",
    ),
    long_running=True,
)
@click.option("--read-only", is_flag=True, help="Use a read-only database session.")
@click.option("--view", metavar="NAME", help="Table or saved view to open first.")
@click.option("--theme", type=click.Choice(NAMES), help="Color theme.")
@click.option("--web", is_flag=True, help="Serve the dashboard to a browser on this machine.")
@click.option("--port", type=params.PORT, help=f"Port of --web; 0: any free port.  [{PORT}]")
@click.option("--open", "opens", is_flag=True, help="With --web: open the browser.")
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
    """Open the live dashboard.

    The last line shows the main keys. Press ? for all keys, : for commands by name, / to filter.
    `draftsman` without arguments opens the dashboard too. With --web, it prints a URL for a browser
    on this machine and runs until Ctrl-C; each browser tab is a separate dashboard.
    """
    if app.json:
        raise UsageError("the dashboard has no JSON output; see: draftsman jobs --json")
    extras.require(extras.DASHBOARD)
    in_browser = os.environ.get("TEXTUAL_DRIVER") == IN_BROWSER
    if web or in_browser or not stdio.is_screen():
        from draftsman_tui.dashboard.launch_options import resolve_options

        resolve_options(app.settings.dashboard, view, theme)  # report errors before starting
    if web:
        values = {"--view": view, "--theme": theme}
        options = [part for name, value in values.items() if value for part in (name, value)]
        options += ["--read-only"] if read_only else []
        await _serve(app, options, PORT if port is None else port, opens=opens)
        return
    if port is not None or opens:
        raise UsageError(f"{'--open' if opens else '--port'} requires --web")
    if not in_browser:
        _require_terminal()
    from draftsman.processes.shutdown import shutdown_signals

    code = None
    async with shutdown_signals(parent) as signals, AsyncExitStack() as connections:
        with nullcontext() if in_browser else first_frame():
            connect = connector(app, connections, read_only=read_only)
            live_dashboard = create_dashboard(
                app, connect, read_only=read_only, view=view, theme=theme
            )
        with signals.handled_by(lambda _: live_dashboard.exit()), ending(signals):
            await live_dashboard.run_async()
        code = live_dashboard.return_code
    if code:
        raise click.exceptions.Exit(code)


def connector(app: App, connections: AsyncExitStack, *, read_only: bool = False) -> Connect:
    """Return a function that connects for the user of this process.

    `connections` closes the connection.
    """

    async def connect() -> tuple[Runtime, Actor]:
        from draftsman.jobs.job import Source

        async with AsyncExitStack() as attempt:
            rt = await attempt.enter_async_context(app.runtime(read_only=read_only, pooled=True))
            actor = await rt.actor(Source.TUI)
            await connections.enter_async_context(attempt.pop_all())
        return rt, actor

    return connect


def create_dashboard(
    app: App,
    connect: Connect,
    *,
    read_only: bool = False,
    view: str | None = None,
    theme: str | None = None,
    started: SupervisedProcesses | None = None,
) -> Dashboard:
    """Build a dashboard; raises ConfigError, UsageError."""
    if app.out.color is False or os.environ.get("NO_COLOR"):
        theme = "none"  # otherwise Textual renders colors as shades of gray
    from draftsman_tui.dashboard.app import Dashboard
    from draftsman_tui.dashboard.launch_options import resolve_options

    options = replace(
        resolve_options(app.settings.dashboard, view, theme), undo=app.settings.questions.undo
    )
    server = server_name(app.settings)
    SHOWN_ZONE.set(UTC if app.utc else local_zone())
    return Dashboard(connect, options, server=server, read_only=read_only, started=started)


def server_name(settings: Settings) -> str:
    """Return the database server for display, without credentials."""
    if settings.database_url is None:
        return "the embedded PostgreSQL"
    url = urlsplit(settings.database_url.get_secret_value())
    host = url.netloc.rpartition("@")[2]
    return f"{host}{url.path}" if host else "PostgreSQL"


def check(app: App) -> None:
    """Validate the configuration of the dashboard; raises ConfigError."""
    from draftsman_tui.dashboard.launch_options import resolve_options

    resolve_options(app.settings.dashboard)


def is_available() -> bool:
    """Return whether the terminal and the installed packages can show the dashboard."""
    return stdio.is_screen() and extras.missing(extras.DASHBOARD) is None


def _require_terminal() -> None:
    if stdio.is_screen():
        return
    problem = (
        f"this terminal (TERM={os.environ['TERM']}) cannot show the dashboard"
        if os.environ.get("TERM") in stdio.DUMB
        else "the dashboard requires a terminal"
    )
    raise UsageError(f"{problem}; see: draftsman jobs, draftsman questions")


async def _serve(app: App, options: Sequence[str], port: int, *, opens: bool) -> None:
    from draftsman.processes.shutdown import shutdown_signals

    async with shutdown_signals() as signals:
        async with app.runtime(read_only=True):
            pass  # report connection errors here, not in the browser
        set_up_log(app)
        from draftsman_tui.dashboard.web.server import Web

        color = ["--no-color"] if app.color is False else []
        dashboard = [*child(app, "dashboard"), *color, *options, "--parent", str(os.getpid())]
        web = Web(dashboard, port)
        async with web.serving() as address:
            with signals.handled_by(lambda _: web.stop()):
                app.out.print(address)
                app.out.info("anyone with this URL can act as you; press Ctrl-C to stop")
                if opens:
                    web.open_browser()
                await web.stopped.wait()
