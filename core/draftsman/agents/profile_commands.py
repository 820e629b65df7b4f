"""Commands of a repository profile, run with a deadline and bounded output."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shlex
import signal
import subprocess
import time
from pathlib import Path
from typing import Any, Final, NamedTuple

from draftsman.agents.agent_client import AgentClient

KEPT_BYTES: Final = 2000
"""Bytes kept of the start of an output, and of its end."""
EXIT_POLL: Final = 0.5
"""Seconds between checks for an exit, since a child of the command may keep the output open."""
MAX_TITLE: Final = 500
"""Characters of a command that is shown."""
NO_MODULE: Final = re.compile(r"No module named '?([\w.]+)'?")
TALLY: Final = re.compile(
    r"\b\d{1,9} \w{0,100}?(error|failed|failure|file|finding|issue|passed|problem)"
)

_numbers = itertools.count(1)


class CommandNotFound(Exception):
    """The program of a command does not exist."""


class CompletedCommand(NamedTuple):
    """Result of a command; `exit_code` is None after a timeout."""

    name: str
    command: str
    exit_code: int | None
    seconds: float
    output: str

    @property
    def summary(self) -> str:
        """The line of the output with the totals, else the last line."""
        if self.exit_code is None:
            return f"timed out after {self.seconds:.0f} s"
        lines = [line.strip() for line in self.output.splitlines() if line.strip()]
        tallies = [line for line in lines if TALLY.search(line)]
        return (tallies or lines or [f"exit {self.exit_code}"])[-1][:200]

    def as_json(self) -> dict[str, Any]:
        """Return the fields for events and reports."""
        return {
            "name": self.name,
            "command": self.command,
            "exit_code": self.exit_code,
            "duration_seconds": round(self.seconds, 3),
            "summary": self.summary,
            "output": self.output,
        }


def run(client: AgentClient, settings: dict[str, Any], folder: Path) -> CompletedCommand:
    """Run a command of the profile in a folder.

    Raises CommandNotFound, and RunParked after killing the command.
    """
    name, command = settings["name"], settings["command"]
    started = time.monotonic()
    call = {"key": f"command-{next(_numbers)}", "text": shlex.join(command)[:MAX_TITLE]}
    client.send("activity", kind="tool", tool="execute", state="running", **call)
    child = _start(name, command, folder)
    try:
        output, in_time = _read(client, child, started + settings["timeout"])
    finally:
        _kill(child)
    code = child.wait() if in_time else None
    ended = "completed" if code == 0 else "failed"
    client.send("activity", kind="tool", tool="execute", state=ended, **call)
    text = output.text()
    if code == 127:
        lines = text.strip().splitlines() or [f"{command[0]} exited with 127"]
        raise CommandNotFound(_advice(name, lines[-1]))
    if code == 1 and _lacks_module(command, text):
        raise CommandNotFound(_advice(name, f"{command[0]} has no module {_module(command)}"))
    return CompletedCommand(name, shlex.join(command), code, time.monotonic() - started, text)


class HeadTailBuffer:
    """The start and the end of a command's output."""

    def __init__(self) -> None:
        self._head, self._tail, self._size = b"", b"", 0

    def add(self, chunk: bytes) -> None:
        """Append a chunk of output."""
        self._size += len(chunk)
        room = KEPT_BYTES - len(self._head)
        self._head += chunk[:room]
        self._tail = (self._tail + chunk[room:])[-KEPT_BYTES:]

    def text(self) -> str:
        """Return the text, with the number of omitted bytes."""
        omitted = self._size - len(self._head) - len(self._tail)
        gap = f"\n… {omitted:,} bytes omitted …\n".encode() if omitted else b""
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
        raise CommandNotFound(_advice(name, f"program {command[0]} not found")) from None


def _read(
    client: AgentClient, child: subprocess.Popen[bytes], deadline: float
) -> tuple[HeadTailBuffer, bool]:
    """Return the output, and whether the command ended before the deadline."""
    output = HeadTailBuffer()
    source = child.stdout.fileno() if child.stdout else 0
    while (left := deadline - time.monotonic()) > 0:
        if client.wait(source, min(left, EXIT_POLL)):
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
    """Kill the command and its remaining children."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    if child.stdout:
        child.stdout.close()


def _lacks_module(command: list[str], output: str) -> bool:
    match = NO_MODULE.search(output)
    return match is not None and match[1].partition(".")[0] == _module(command)


def _advice(name: str, problem: str) -> str:
    return (
        f"command {name!r}: {problem[:300]}; install it where the sandbox can read it"
        " ([sandbox] read_only), or change the profile"
    )


def _module(command: list[str]) -> str | None:
    """Return the top-level package of the `-m` argument."""
    after = command[command.index("-m") + 1 :] if "-m" in command else []
    return after[0].partition(".")[0] if after else None
