"""Runs a profile's commands: with a deadline, bounded output, and an ear for the worker."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from draftsman.agents.agent_client import AgentClient

KEPT_BYTES: Final = 2000
"""Characters kept of the start of an output, and of its end."""
LOOK: Final = 0.5
"""Seconds after which an exit is noticed though a child of the command keeps its output open."""
NO_MODULE: Final = re.compile(r"No module named '?([\w.]+)'?")
TALLY: Final = re.compile(
    r"\b\d{1,9} \w{0,100}?(error|failed|failure|file|finding|issue|passed|problem)"
)


class CommandNotFound(Exception):
    """A command of the profile names a program that is not there."""


@dataclass(frozen=True, slots=True)
class CompletedCommand:
    """One command that ran; `exit_code` is None when it took longer than it may."""

    name: str
    command: str
    exit_code: int | None
    seconds: float
    output: str

    @property
    def summary(self) -> str:
        """The line of the output that sums it up."""
        if self.exit_code is None:
            return f"stopped after {self.seconds:.0f} s"
        lines = [line.strip() for line in self.output.splitlines() if line.strip()]
        tallies = [line for line in lines if TALLY.search(line)]
        return (tallies or lines or [f"exit {self.exit_code}"])[-1][:200]

    def as_json(self) -> dict[str, Any]:
        """Return it as events and reports carry it."""
        return {
            "name": self.name,
            "command": self.command,
            "exit_code": self.exit_code,
            "duration_seconds": round(self.seconds, 3),
            "summary": self.summary,
            "output": self.output,
        }


def run(client: AgentClient, settings: dict[str, Any], folder: Path) -> CompletedCommand:
    """Run a command of the profile in the folder.

    Raises CommandNotFound, and Parked after killing it.
    """
    name, command = settings["name"], settings["command"]
    began = time.monotonic()
    child = _start(name, command, folder)
    try:
        output, in_time = _read(client, child, began + settings["timeout"])
    finally:
        _kill(child)
    code = child.wait() if in_time else None
    text = output.text()
    if code == 127:
        said = text.strip().splitlines() or [f"{command[0]} found no program"]
        raise CommandNotFound(_advice(name, said[-1]))
    if code == 1 and _lacks_module(command, text):
        raise CommandNotFound(_advice(name, f"{command[0]} has no module {_module(command)}"))
    return CompletedCommand(name, shlex.join(command), code, time.monotonic() - began, text)


class HeadTailBuffer:
    """The start and the end of what a command writes."""

    def __init__(self) -> None:
        self._head, self._tail, self._size = b"", b"", 0

    def add(self, chunk: bytes) -> None:
        """Take in some more."""
        self._size += len(chunk)
        room = KEPT_BYTES - len(self._head)
        self._head += chunk[:room]
        self._tail = (self._tail + chunk[room:])[-KEPT_BYTES:]

    def text(self) -> str:
        """Return it, with a word where something is left out."""
        missing = self._size - len(self._head) - len(self._tail)
        gap = f"\n… {missing:,} bytes …\n".encode() if missing else b""
        return (self._head + gap + self._tail).decode(errors="replace").replace("\0", "")


def _start(name: str, command: list[str], folder: Path) -> subprocess.Popen[bytes]:
    quiet = {"NO_COLOR": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        return subprocess.Popen(
            command,
            cwd=folder,
            env=os.environ | quiet,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError:
        raise CommandNotFound(_advice(name, f"there is no program {command[0]}")) from None


def _read(
    client: AgentClient, child: subprocess.Popen[bytes], deadline: float
) -> tuple[HeadTailBuffer, bool]:
    """Return the output, and whether the command ended in time."""
    output = HeadTailBuffer()
    source = child.stdout.fileno() if child.stdout else 0
    while (left := deadline - time.monotonic()) > 0:
        if client.wait(source, min(left, LOOK)):
            chunk = os.read(source, 1 << 16)
            output.add(chunk)
            if not chunk:
                return output, _ends(child, deadline)
        elif child.poll() is not None:
            return output, True
    return output, False


def _ends(child: subprocess.Popen[bytes], deadline: float) -> bool:
    try:
        child.wait(max(deadline - time.monotonic(), 0))
    except subprocess.TimeoutExpired:
        return False
    return True


def _kill(child: subprocess.Popen[bytes]) -> None:
    """Kill it, and what it left behind."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    if child.stdout:
        child.stdout.close()


def _lacks_module(command: list[str], output: str) -> bool:
    found = NO_MODULE.search(output)
    return found is not None and found[1].partition(".")[0] == _module(command)


def _advice(name: str, problem: str) -> str:
    return (
        f"command {name!r}: {problem[:300]}; install it where the sandbox can read it"
        " ([sandbox] read_only), or change the profile"
    )


def _module(command: list[str]) -> str | None:
    """Return what `-m` names, dots left out."""
    after = command[command.index("-m") + 1 :] if "-m" in command else []
    return after[0].partition(".")[0] if after else None
