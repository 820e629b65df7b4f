"""What `up` is on a terminal: the dashboard; a line of numbers where there can be none.

The work is done by `up --headless`, which is held by a leash: see `held`.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from draftsman_tui.cli import asking, dashboard, status_line
from draftsman_tui.cli.held import Held, holding

if TYPE_CHECKING:
    from draftsman.runtime import Runtime
    from draftsman.shutdown import ShutdownSignals
    from draftsman_tui.cli.app import App
    from draftsman_tui.dashboard.app import Dashboard
    from draftsman_tui.dashboard.started import Started

LOOK: Final = 1.0
"""Seconds between two looks at the log and at the numbers."""


class Foreground:
    """One `up` on a terminal."""

    def __init__(self, app: App, command: Sequence[str], signals: ShutdownSignals) -> None:
        self._app = app
        self._command = command
        self._signals = signals
        self._held: Held | None = None
        self._shown = False
        self._interrupted = asyncio.Event()
        self._dashboard: Dashboard | None = None

    async def run(self) -> int:
        """Show what goes on until all is stopped, or left running; return the exit code."""
        if dashboard.can_be_shown():
            dashboard.check(self._app)  # before anything is started that would have to be stopped
        with self._signals.handled_by(self._receive):
            return await self._hold(self._app.settings.data_dir.expanduser() / "up.log")

    async def _hold(self, path: Path) -> int:
        """Start the supervisor, and stay with it."""
        async with holding(self._command, path) as held, self._app.runtime() as rt:
            self._held = held
            if self._signals.received:
                held.stop()
            elif dashboard.can_be_shown():
                await self._show_dashboard(rt, held)
            self._shown = True
            while not (held.ended or held.left):
                await self._show_line(rt, held)
            status_line.print_above(held.said())
            if held.left:
                self._app.out.say(f"left running, pid {held.pid}; its log: {path}")
                self._app.out.say("look at it with: draftsman dashboard")
                self._app.out.say(f"stop it with: kill {held.pid}")
                return 0
            code = await held.ending
            if code < 0:
                self._app.out.say(f"draftsman: the supervisor was killed by signal {-code}")
            if code and not held.told:
                self._app.out.say(f"all has ended; its log: {path}")
        return code if code >= 0 else 128 - code

    async def _show_dashboard(self, rt: Runtime, held: Held) -> None:
        """Let the person look and do, until they leave or there is nothing to look after."""
        from draftsman_tui.dashboard.started import Started

        started = Started(held.pid, held.log)
        self._dashboard = shown = await dashboard.make(self._app, rt, started=started)
        watching = asyncio.create_task(_watch(held, shown, started))
        self._shown = True
        try:
            # where Textual would wait for a terminal that is gone, the leash breaks, and all stops
            with self._signals.left_to_kernel(signal.SIGHUP):
                choice = await shown.run_async()
        finally:
            self._dashboard = None
            watching.cancel()
        if held.ended:
            status_line.print_above("\n".join([*held.recent, ""]))
        elif choice == "leave":
            held.let_go()
        elif choice == "stop" and not held.told:
            held.stop()
        elif shown.return_code:
            self._app.out.say("the dashboard failed; the processes go on")

    async def _show_line(self, rt: Runtime, held: Held) -> None:
        """Show it once, wait for the next time, and hear what the person wants."""
        status_line.print_above(held.said())
        status_line.show(await status_line.numbers(rt, stopping=held.told))
        waiting = asyncio.create_task(self._interrupted.wait())
        await asyncio.wait(
            {held.ending, waiting}, timeout=LOOK, return_when=asyncio.FIRST_COMPLETED
        )
        waiting.cancel()
        if self._interrupted.is_set() and not held.ended:
            self._interrupted.clear()
            match "stop" if held.told else _ask():
                case "leave":
                    held.let_go()
                case "stop":
                    held.stop()

    def _receive(self, name: str) -> None:
        """Ask what Ctrl-C is to stop, once something is shown; stop all without asking else."""
        if name != signal.SIGINT.name or not self._shown:
            if self._held is not None and not self._held.told:
                self._held.stop()
            if self._dashboard is not None:
                self._dashboard.exit("stop")
        elif self._dashboard is None:
            self._interrupted.set()
        else:
            self._dashboard.leave()


async def _watch(held: Held, shown: Dashboard, started: Started) -> None:
    """Let the dashboard hear of processes that die; it ends with the last one."""
    while not held.ended:
        if started.hear(held.said().splitlines()):
            shown.live.stir()
        await asyncio.wait({held.ending}, timeout=LOOK)
    held.said()
    shown.exit()


def _ask() -> str:
    """Ask what to do; Enter alone goes on, another Ctrl-C or the end of the terminal stops all."""
    status_line.print_above("")
    try:
        return asking.prompt(
            "Stop all, leave it running, or go on",
            choices=("stop", "leave", "go-on"),
            default="go-on",
        )
    except click.Abort:
        return "stop"
