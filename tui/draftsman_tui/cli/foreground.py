"""What `up` is on a terminal: the dashboard; a line of numbers where there can be none.

The work is done by `up --headless`, which is held by a leash: see `held`.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import click

from draftsman_tui.cli import asking, dashboard, status_line
from draftsman_tui.cli.held import Held, holding

if TYPE_CHECKING:
    from draftsman.runtime import Runtime
    from draftsman_tui.cli.app import App
    from draftsman_tui.dashboard.app import Dashboard
    from draftsman_tui.dashboard.started import Started

LOOK: Final = 1.0
"""Seconds between two looks at the log and at the numbers."""


class Foreground:
    """One `up` on a terminal."""

    def __init__(self, app: App, command: Sequence[str]) -> None:
        self._app = app
        self._command = command
        self._interrupted = asyncio.Event()
        self._dashboard: Dashboard | None = None

    async def run(self) -> int:
        """Show what goes on until all is stopped, or left running; return the exit code."""
        if dashboard.can_be_shown():
            dashboard.check(self._app)  # before anything is started that would have to be stopped
        path = self._app.settings.data_dir.expanduser() / "up.log"
        async with holding(self._command, path) as held, self._app.runtime() as rt:
            self._catch(held)
            if dashboard.can_be_shown():
                await self._show_dashboard(rt, held)
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
        dashboard.die_with_the_terminal()  # the leash breaks then, and all stops
        try:
            choice = await shown.run_async()
        finally:
            self._dashboard = None
            watching.cancel()
            self._catch(held)
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

    def _catch(self, held: Held) -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self._interrupt)
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._end, held)

    def _interrupt(self) -> None:
        if self._dashboard is None:
            self._interrupted.set()
        else:
            self._dashboard.leave()

    def _end(self, held: Held) -> None:
        """Stop all without asking."""
        if not held.told:
            held.stop()
        if self._dashboard is not None:
            self._dashboard.exit("stop")


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
