"""What `up` shows on a terminal: one line of what goes on, and above it what the processes log.

The work is done by `up --headless`, started in a session of its own and held by a leash: a pipe
that closes with us, however we end. Leaving it running is letting go of the leash.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

import click

from draftsman.errors import DraftsmanError, UsageError
from draftsman_tui.cli import asking
from draftsman_tui.cli.output import plain
from draftsman_tui.cli.supervise import DETACH

if TYPE_CHECKING:
    from draftsman.runtime import Runtime
    from draftsman.services.inspect import Stats
    from draftsman_tui.cli.app import App

LOOK: Final = 1.0
"""Seconds between two looks at the numbers."""
KEPT: Final = 10_000_000
"""Bytes of log above which a new start empties it."""
CLEAR: Final = "\r\x1b[2K"


class Foreground:
    """One `up` on a terminal."""

    def __init__(self, app: App, command: Sequence[str]) -> None:
        self._app = app
        self._command = command
        self._interrupted = asyncio.Event()
        self._told = False

    async def run(self) -> int:
        """Show what goes on until all is stopped, or left running; return the exit code."""
        path = self._app.settings.data_dir.expanduser() / "up.log"
        with _log_file(path) as log:
            at = log.seek(0, os.SEEK_END)
            process = await asyncio.create_subprocess_exec(
                *self._command, stdin=PIPE, stdout=log, stderr=log, start_new_session=True
            )
        with path.open("rb") as lines:
            lines.seek(at)
            async with self._app.runtime(read_only=True) as rt:
                return await self._watch(rt, process, lines, path)

    async def _watch(self, rt: Runtime, process: Process, lines: BinaryIO, path: Path) -> int:
        ending = asyncio.create_task(process.wait())
        self._catch()
        while not ending.done():
            _print_above(lines)
            _print_status(await _status(rt, stopping=self._told))
            waiting = asyncio.create_task(self._interrupted.wait())
            await asyncio.wait({ending, waiting}, timeout=LOOK, return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            if self._interrupted.is_set() and not ending.done() and not self._next(process):
                _print_above(lines)
                self._app.out.say(f"left running, pid {process.pid}; its log: {path}")
                self._app.out.say(f"stop it with: kill {process.pid}")
                return 0
        _print_above(lines)
        return await ending

    def _next(self, process: Process) -> bool:
        """Do what the person wants after Ctrl-C; return False when all is to be left running."""
        self._interrupted.clear()
        choice = "stop" if self._told else self._ask()
        if choice == "leave":
            assert process.stdin is not None  # noqa: S101 - it was started with a pipe
            process.stdin.write(DETACH)
            process.stdin.close()
            return False
        if choice == "stop":
            self._told = True
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
        return True

    def _ask(self) -> str:
        """Ask what to do; another Ctrl-C, or the end of the terminal, stops all."""
        print(CLEAR, end="", file=sys.stderr)  # noqa: T201 - the status line goes
        try:
            choice = asking.prompt(
                "Stop all, leave it running, or go on",
                choices=("stop", "leave", "go-on"),
                default="stop",
            )
        except click.Abort:
            choice = "stop"
        return choice

    def _catch(self) -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self._interrupted.set)
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._end)

    def _end(self) -> None:
        """Stop all without asking."""
        self._told = True
        self._interrupted.set()


async def _status(rt: Runtime, *, stopping: bool) -> str:
    try:
        text = _numbers(await rt.inspect.stats())
    except DraftsmanError as error:
        text = str(error)
    return f"stopping; Ctrl-C: at once · {text}" if stopping else f"{text} · Ctrl-C: stop"


def _numbers(stats: Stats) -> str:
    jobs = stats.jobs
    waiting = jobs["waiting_for_input"] + jobs["waiting_for_approval"]
    queued = jobs["queued"] + jobs["resumed"] + jobs["claimed"]
    parts = [f"{stats.workers} worker{'' if stats.workers == 1 else 's'}"]
    parts += [f"{jobs['running']} running", f"{queued} queued"]
    parts += [f"{waiting} waiting: draftsman questions"] if waiting else ["nobody asked"]
    return " · ".join(parts)


def _print_status(text: str) -> None:
    width = shutil.get_terminal_size((80, 24)).columns
    with contextlib.suppress(OSError):
        sys.stderr.write(f"{CLEAR}{plain(text)[: width - 1]}")
        sys.stderr.flush()


def _print_above(lines: BinaryIO) -> None:
    """Print what was logged since the last look, in place of the status line."""
    text = lines.read().decode("utf-8", "replace")
    with contextlib.suppress(OSError):
        sys.stderr.write(CLEAR + plain(text))
        sys.stderr.flush()


def _log_file(path: Path) -> BinaryIO:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and path.stat().st_size > KEPT:
            path.write_bytes(b"")
        return path.open("ab")
    except OSError as error:
        raise UsageError(
            f"{path}: {error.strerror}; set data_dir to a directory that you can write to"
        ) from None
