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

from draftsman_tui.cli import prompts
from draftsman_tui.cli.process import dashboard, status_line
from draftsman_tui.cli.process.supervisor_handle import SupervisorHandle, start_supervisor

if TYPE_CHECKING:
    from draftsman.runtime import Runtime
    from draftsman.shutdown import ShutdownSignals
    from draftsman_tui.cli.app import App
    from draftsman_tui.dashboard.app import Dashboard
    from draftsman_tui.dashboard.supervised import SupervisedProcesses

LOOK: Final = 1.0
"""Seconds between two looks at the log and at the numbers."""


class Foreground:
    """One `up` on a terminal."""

    def __init__(self, app: App, command: Sequence[str], signals: ShutdownSignals) -> None:
        self._app = app
        self._command = command
        self._signals = signals
        self._held: SupervisorHandle | None = None
        self._shown = False
        self._interrupted = asyncio.Event()
        self._dashboard: Dashboard | None = None

    async def run(self) -> int:
        """Show what goes on until all is stopped, or left running; return the exit code."""
        if dashboard.is_available():
            dashboard.check(self._app)  # before anything is started that would have to be stopped
        with self._signals.handled_by(self._receive):
            return await self._hold(self._app.settings.data_dir.expanduser() / "up.log")

    async def _hold(self, path: Path) -> int:
        """Start the supervisor, and stay with it."""
        async with start_supervisor(self._command, path) as held, self._app.runtime() as rt:
            self._held = held
            if self._signals.received:
                held.stop()
            elif dashboard.is_available():
                await self._show_dashboard(rt, held)
            self._shown = True
            while not (held.ended or held.detached):
                await self._show_line(rt, held)
            status_line.print_above(held.read_new_output())
            if held.detached:
                self._app.out.info(f"left running, pid {held.pid}; its log: {path}")
                self._app.out.info("look at it with: draftsman dashboard")
                self._app.out.info(f"stop it with: kill {held.pid}")
                return 0
            code = await held.exit_task
            if code < 0:
                self._app.out.info(f"draftsman: the supervisor was killed by signal {-code}")
            if code and not held.stopping:
                self._app.out.info(f"all has ended; its log: {path}")
        return code if code >= 0 else 128 - code

    async def _show_dashboard(self, rt: Runtime, held: SupervisorHandle) -> None:
        """Let the person look and do, until they leave or there is nothing to look after."""
        from draftsman_tui.dashboard.supervised import SupervisedProcesses

        started = SupervisedProcesses(held.pid, held.log)
        self._dashboard = shown = await dashboard.create_dashboard(self._app, rt, started=started)
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
            held.detach()
        elif choice == "stop" and not held.stopping:
            held.stop()
        elif shown.return_code:
            self._app.out.info("the dashboard failed; the processes go on")

    async def _show_line(self, rt: Runtime, held: SupervisorHandle) -> None:
        """Show it once, wait for the next time, and hear what the person wants."""
        status_line.print_above(held.read_new_output())
        status_line.show(await status_line.numbers(rt, stopping=held.stopping))
        waiting = asyncio.create_task(self._interrupted.wait())
        await asyncio.wait(
            {held.exit_task, waiting}, timeout=LOOK, return_when=asyncio.FIRST_COMPLETED
        )
        waiting.cancel()
        if self._interrupted.is_set() and not held.ended:
            self._interrupted.clear()
            match "stop" if held.stopping else _ask():
                case "leave":
                    held.detach()
                case "stop":
                    held.stop()

    def _receive(self, name: str) -> None:
        """Ask what Ctrl-C is to stop, once something is shown; stop all without asking else."""
        if name != signal.SIGINT.name or not self._shown:
            if self._held is not None and not self._held.stopping:
                self._held.stop()
            if self._dashboard is not None:
                self._dashboard.exit("stop")
        elif self._dashboard is None:
            self._interrupted.set()
        else:
            self._dashboard.leave()


async def _watch(held: SupervisorHandle, shown: Dashboard, started: SupervisedProcesses) -> None:
    """Let the dashboard hear of processes that die; it ends with the last one."""
    while not held.ended:
        if started.read_log(held.read_new_output().splitlines()):
            shown.live.request_stats()
        await asyncio.wait({held.exit_task}, timeout=LOOK)
    held.read_new_output()
    shown.exit()


def _ask() -> str:
    """Ask what to do; Enter alone goes on, another Ctrl-C or the end of the terminal stops all."""
    status_line.print_above("")
    try:
        return prompts.prompt(
            "Stop all, leave it running, or go on",
            choices=("stop", "leave", "go-on"),
            default="go-on",
        )
    except click.Abort:
        return "stop"
