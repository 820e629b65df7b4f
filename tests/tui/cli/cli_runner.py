"""Runners of the command line: in this process, in another process, and on a terminal."""

from __future__ import annotations

import asyncio
import fcntl
import io
import json
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from draftsman_tui.cli import main
from tests.support.fork_server import CONTROLLING_TERMINAL

COMMAND = (sys.executable, "-m", "draftsman_tui")
DEADLINE = 30.0
"""Timeout in seconds."""

IMPORTABLE = {
    "PYTHONPATH": os.pathsep.join(
        [*filter(None, [os.environ.get("PYTHONPATH")]), str(Path(__file__).resolve().parents[3])]
    )
}
"""Handlers of the tests: a worker does not import from the current directory."""


@dataclass(frozen=True)
class Result:
    """Exit code, stdout and stderr of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Return the JSON document on stdout of a successful command."""
        assert self.code == 0, self
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        """Return the JSON lines on stdout."""
        return [json.loads(line) for line in self.out.splitlines()]

    def refused(self, code: int, *arguments: str) -> str:
        """Return the only line on stderr, after checking exit code and `words`."""
        assert self.code == code, self
        assert self.err.count("\n") == 1, self.err
        assert self.err.startswith("draftsman: "), self.err
        assert "Traceback" not in self.err
        for word in arguments:
            assert word in self.err, self.err
        return self.err


class Cli:
    """Runs commands in this process with a configuration, against the test database."""

    def __init__(self, config: Path, capture: pytest.CaptureFixture[str]) -> None:
        self.config = config
        self._capture = capture

    async def __call__(self, *args: object, stdin: str | bytes | None = None) -> Result:
        """Run a command."""
        arguments = ["--config", str(self.config), *map(str, args)]
        self._capture.readouterr()
        before = sys.stdin
        data = stdin.encode() if isinstance(stdin, str) else stdin or b""
        sys.stdin = io.TextIOWrapper(io.BytesIO(data))
        try:
            code = await asyncio.to_thread(main.run, arguments)
        finally:
            sys.stdin = before
        captured = self._capture.readouterr()
        return Result(code, captured.out, captured.err)


def process(
    *args: object, stdout: int = subprocess.PIPE, shell: str | None = None, **env: str
) -> subprocess.CompletedProcess[str]:
    """Run a command as a process to its end; `shell` is a script of the shell that runs it."""
    through = [] if shell is None else ["sh", "-c", shell, "sh"]
    return subprocess.run(
        [*through, *COMMAND, *map(str, args)],
        env={**os.environ, **IMPORTABLE, **env},
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        timeout=4 * DEADLINE,
        check=False,
    )


def until(look: Callable[[], bool], awaited: str) -> None:
    """Return once `look` says yes; fail with `what` was missing at the deadline."""
    deadline = time.monotonic() + DEADLINE
    while not look():
        assert time.monotonic() < deadline, f"{awaited}: not within {DEADLINE:.0f} s"
        select.select([], [], [], 0.02)


class Terminal:
    """A command on a pseudo-terminal; its output is in `screen`."""

    size = (80, 24)
    """Columns and lines."""
    controls = True
    """Whether it is the controlling terminal, whose hangup is a signal."""

    def __init__(self, *args: object, **env: str) -> None:
        self.screen = ""
        env = {"TERM": "xterm", "COLUMNS": "", "LINES": ""} | env
        self._fd, end = pty.openpty()
        self.resize(*self.size)
        through = [sys.executable, "-c", CONTROLLING_TERMINAL] if self.controls else []
        command = [*through, *COMMAND, *map(str, args)]
        self._process = subprocess.Popen(
            command,
            env={**os.environ, **IMPORTABLE, **env},
            stdin=end,
            stdout=end,
            stderr=end,
            start_new_session=True,
        )
        self.pid = self._process.pid
        os.close(end)

    @property
    def plain(self) -> str:
        """Return the screen without escape sequences."""
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.screen).replace("\r\n", "\n")

    def expect(self, text: str) -> None:
        """Read until `text` is shown."""
        until(lambda: text in self.plain or not self.read(), repr(text))
        assert text in self.plain, self.plain

    def resize(self, columns: int, lines: int) -> None:
        """Resize the terminal, and signal the command."""
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def type(self, text: str) -> None:
        """Type a text."""
        os.write(self._fd, text.encode())

    def end(self) -> int:
        """Read to the end; return the exit code."""
        try:
            until(lambda: not self.read(), "the end of the command")
        except AssertionError as error:
            raise AssertionError(f"{error}; newest output: {self.plain[-3000:]}") from None
        code: int = self._process.wait(DEADLINE)
        return code

    def hang_up(self) -> None:
        """Close the terminal like its window."""
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1

    def close(self) -> None:
        """Kill the command if it still runs."""
        self._process.kill()
        self._process.wait(DEADLINE)
        self.hang_up()

    def read(self) -> bool:
        """Read available output; return False at the end of the output."""
        if not select.select([self._fd], [], [], 0.1)[0]:
            return True
        try:
            data = os.read(self._fd, 65536)
        except OSError:  # the command has closed the terminal
            return False
        self.show(data)
        return bool(data)

    def show(self, data: bytes) -> None:
        """Append output to the screen."""
        self.screen += data.decode("utf-8", "replace")
