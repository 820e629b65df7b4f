"""The `up` command on a terminal: the dashboard, or a status line without it.

`up --headless` does the work as a child process; see `supervisor_handle`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

import click

from draftsman.errors import DraftsmanError, UsageError
from draftsman.formats.amounts import count_text, counted
from draftsman.jobs.counts import number_of
from draftsman_tui.cli import prompts
from draftsman_tui.cli.processes import dashboard
from draftsman_tui.cli.processes import dashboard as hangup
from draftsman_tui.cli.processes.supervisor import DETACH
from draftsman_tui.terminal import extras, stdio
from draftsman_tui.terminal.output import plain
from draftsman_tui.terminal.own_command import start_process

if TYPE_CHECKING:
    from draftsman.jobs.details.stats import Stats
    from draftsman.people.actor import Actor
    from draftsman.processes.shutdown import ShutdownSignals
    from draftsman.runtime import Runtime
    from draftsman_tui.cli.app import App
    from draftsman_tui.dashboard.app import Dashboard
    from draftsman_tui.dashboard.frame.connection import Connect
    from draftsman_tui.dashboard.worker.supervised import SupervisedProcesses


# Handle of the supervisor that `up` starts in a session of its own.
#
# The supervisor's stdin is a pipe from this process. When the pipe closes, for whatever reason, the
# supervisor stops everything, unless it was detached first.
MAX_LOG_SIZE: Final = 10_000_000
"""Bytes; a larger log is truncated at the start."""
MAX_RECENT_LINES: Final = 20
"""Maximum number of recent log lines in memory."""


class SupervisorHandle:
    """A running supervisor and its log."""

    def __init__(self, process: Process, log: Path, lines: BinaryIO) -> None:
        self.pid = process.pid
        self.log = log
        self.exit_task = asyncio.create_task(process.wait())
        self.stopping = False
        self.detached = False
        self.recent = deque[str](maxlen=MAX_RECENT_LINES)
        self._process = process
        self._lines = lines

    @property
    def ended(self) -> bool:
        """Whether the supervisor exited."""
        return self.exit_task.done()

    def stop(self) -> None:
        """Request shutdown; a second call makes the supervisor kill its children."""
        self.stopping = True
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)

    def detach(self) -> None:
        """Keep the supervisor running after this process exits."""
        self.detached = True
        assert self._process.stdin is not None  # noqa: S101 - it was started with a pipe
        self._process.stdin.write(DETACH)
        self._process.stdin.close()

    def read_new_output(self) -> str:
        """Return the log output since the last call."""
        text = self._lines.read().decode("utf-8", "replace")
        self.recent += text.splitlines()
        return text


@asynccontextmanager
async def start_supervisor(command: Sequence[str], log: Path) -> AsyncIterator[SupervisorHandle]:
    """Start the supervisor and read its log from here; raises UsageError for an unwritable log."""
    with _log_file(log) as file:
        offset = file.seek(0, os.SEEK_END)
        process = await start_process(command, stdin=PIPE, output=file)
    with log.open("rb") as lines:
        lines.seek(offset)
        handle = SupervisorHandle(process, log, lines)
        try:
            yield handle
        finally:
            handle.exit_task.cancel()


def _log_file(path: Path) -> BinaryIO:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and path.stat().st_size > MAX_LOG_SIZE:
            path.write_bytes(b"")
        return path.open("ab")
    except OSError as error:
        raise UsageError(
            f"{path}: {error.strerror}; set data_dir to a writable directory"
        ) from None


CLEAR: Final = "\r\x1b[2K"


async def numbers(rt: Runtime | None, *, stopping: bool) -> str:
    """Return the status line: the effect of Ctrl-C, and counts if connected."""
    texts = ["stopping; Ctrl-C: stop now"] if stopping else []
    if rt is not None:
        try:
            texts.append(_counts(await rt.read_model.stats()))
        except DraftsmanError as error:
            texts.append(str(error))
    return " · ".join(texts if stopping else [*texts, "Ctrl-C: stop"])


def show(text: str) -> None:
    """Replace the status line."""
    width = shutil.get_terminal_size((80, 24)).columns
    _write(f"{CLEAR}{plain(text)[: width - 1]}")


def print_above(text: str) -> None:
    """Print lines above the status line; without text, erase the status line."""
    _write(CLEAR + plain(text))


def _counts(stats: Stats) -> str:
    numbers = {word: number_of(word, stats.jobs) for word in ("running", "queued", "resumed")}
    waiting = number_of("waiting", stats.jobs)
    counts = [
        counted(stats.workers, "worker"),
        *(f"{count_text(numbers[word])} {word}" for word in ("running", "queued")),
        *[f"{count_text(numbers['resumed'])} resumed"] * bool(numbers["resumed"]),
        f"{count_text(waiting)} waiting: draftsman questions" if waiting else "none waiting",
    ]
    return " · ".join(counts)


def _write(text: str) -> None:
    with contextlib.suppress(OSError):
        sys.stderr.write(text)
        sys.stderr.flush()


POLL_INTERVAL: Final = 1.0
"""Seconds between reads of the log and the counts."""


class Foreground:
    """An interactive `up`."""

    def __init__(self, app: App, command: Sequence[str], signals: ShutdownSignals) -> None:
        self._app = app
        self._command = command
        self._signals = signals
        self._rt: Runtime | None = None
        """The services, once they are connected."""
        self._held: SupervisorHandle | None = None
        self._shown = False
        self._interrupted = asyncio.Event()
        self._dashboard: Dashboard | None = None

    async def run(self) -> int:
        """Show progress until everything stopped or was detached; return the exit code."""
        if dashboard.is_available():
            dashboard.check(self._app)  # before processes are started
        elif stdio.is_screen() and extras.missing(extras.DASHBOARD):
            self._app.out.info(f"draftsman: {extras.advice(extras.DASHBOARD)}")
        with self._signals.handled_by(self._receive):
            return await self._attach(self._app.settings.data_dir.expanduser() / "up.log")

    async def _attach(self, path: Path) -> int:
        """Start the supervisor and stay attached until it exits or is detached."""
        async with (
            start_supervisor(self._command, path) as handle,
            AsyncExitStack() as connections,
        ):
            self._held = handle
            connect = self._connector(connections)
            if self._signals.received:
                handle.stop()
            elif dashboard.is_available():
                await self._show_dashboard(connect, handle)
            if self._rt is None and not (handle.ended or handle.detached or handle.stopping):
                await connect()
            self._shown = True
            while not (handle.ended or handle.detached):
                await self._show_line(handle)
            print_above(handle.read_new_output())
            if handle.detached:
                self._app.out.info(f"processes keep running, pid {handle.pid}; log: {path}")
                self._app.out.info("to view them: draftsman dashboard")
                self._app.out.info(f"to stop them: kill {handle.pid}")
                return 0
            code = await handle.exit_task
            if code < 0:
                self._app.out.info(f"draftsman: the supervisor was killed by signal {-code}")
            if code and not handle.stopping:
                self._app.out.info(f"all processes exited; log: {path}")
        return code if code >= 0 else 128 - code

    def _connector(self, connections: AsyncExitStack) -> Connect:
        connect = dashboard.connector(self._app, connections)

        async def remember() -> tuple[Runtime, Actor]:
            self._rt, actor = await connect()
            return self._rt, actor

        return remember

    async def _show_dashboard(self, connect: Connect, handle: SupervisorHandle) -> None:
        """Run the dashboard until the user quits or the supervisor exits."""
        from draftsman_tui.dashboard.worker.supervised import SupervisedProcesses

        processes = SupervisedProcesses(handle.pid, handle.log)
        self._dashboard = live_dashboard = dashboard.create_dashboard(
            self._app, connect, started=processes
        )
        watching = asyncio.create_task(_watch(handle, live_dashboard, processes))
        self._shown = True
        try:
            with hangup.ending(self._signals):  # then the pipe closes and everything stops
                choice = await live_dashboard.run_async()
        finally:
            self._dashboard = None
            watching.cancel()
        if handle.ended:
            print_above("\n".join([*handle.recent, ""]))
        elif choice == "leave":
            handle.detach()
        elif choice == "stop" and not handle.stopping:
            handle.stop()
        elif live_dashboard.return_code:
            self._app.out.info("the dashboard failed; the processes keep running")

    async def _show_line(self, handle: SupervisorHandle) -> None:
        """Update the status line, wait for the next interval, and handle Ctrl-C and hangups."""
        if not handle.stopping and hangup.has_happened():
            handle.stop()
        print_above(handle.read_new_output())
        show(await numbers(self._rt, stopping=handle.stopping))
        waiting = asyncio.create_task(self._interrupted.wait())
        await asyncio.wait(
            {handle.exit_task, waiting}, timeout=POLL_INTERVAL, return_when=asyncio.FIRST_COMPLETED
        )
        waiting.cancel()
        if self._interrupted.is_set() and not handle.ended:
            self._interrupted.clear()
            match "stop" if handle.stopping else _ask():
                case "leave":
                    handle.detach()
                case "stop":
                    handle.stop()

    def _receive(self, name: str) -> None:
        """Prompt on Ctrl-C once something is shown; stop everything on any other signal."""
        if name != signal.SIGINT.name or not self._shown:
            if self._held is not None and not self._held.stopping:
                self._held.stop()
            if self._dashboard is not None:
                self._dashboard.exit("stop")
        elif self._dashboard is None:
            self._interrupted.set()
        else:
            self._dashboard.request_quit()


async def _watch(
    handle: SupervisorHandle, live_dashboard: Dashboard, processes: SupervisedProcesses
) -> None:
    """Forward the log to the dashboard, and close the dashboard when the supervisor exits."""
    while not handle.ended:
        if processes.read_log(handle.read_new_output().splitlines()):
            live_dashboard.refresher.request_stats()
        await asyncio.wait({handle.exit_task}, timeout=POLL_INTERVAL)
    handle.read_new_output()
    live_dashboard.exit()


def _ask() -> str:
    """Prompt for the action; Enter continues, a second Ctrl-C or a closed terminal stops."""
    print_above("")
    try:
        return prompts.prompt(
            "Stop all processes, leave them running, or continue",
            choices=("stop", "leave", "continue"),
            default="continue",
        )
    except click.Abort:
        return "stop"
