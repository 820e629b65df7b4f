"""A terminal and its screen, as far as our programs use it."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping, Sequence

from bench.server import DEADLINE, BenchError

COLUMNS = 120
LINES = 40
PATIENCE = 30.0
"""Seconds after which missing output is an error."""
CONTROLLED = """import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])"""
"""Makes the terminal the controlling terminal of the program."""
_SYNC = b"\x1b[?2026$p"
"""Query of synchronized output, which the terminal supports."""
_PART = re.compile(
    r"\x1b\[(?P<given>[0-9;?<>=]*)[ !$]*(?P<verb>[@-~])"
    r"|\x1b[\]P_^][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()][0-9A-Z]|\x1b[=>78cM]"
    r"|(?P<control>[\r\n\x08])|(?P<text>[^\x1b\r\n\x08]+)"
)
_CUT = re.compile(r"\x1b(?:\[[0-9;?<>= !$]*|[\]P_^][^\x07]*|[()])?\Z")


class Screen:
    """Cells of equal width, without colors."""

    def __init__(self) -> None:
        self.cells = [[" "] * COLUMNS for _ in range(LINES)]
        self._x = self._y = 0
        self._rest = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    @property
    def lines(self) -> list[str]:
        """The text of each line."""
        return ["".join(line).rstrip() for line in self.cells]

    def feed(self, data: bytes) -> None:
        """Process output of the program."""
        text = self._rest + self._decoder.decode(data)
        cut = _CUT.search(text)
        self._rest = text[cut.start() :] if cut else ""
        for part in _PART.finditer(text, 0, cut.start() if cut else len(text)):
            if (characters := part["text"]) is not None:
                self._write(characters)
            elif part["verb"]:
                self._move(part["given"], part["verb"])
            elif part["control"] == "\n":
                self._y = min(LINES - 1, self._y + 1)
            elif part["control"] == "\r":
                self._x = 0

    def _write(self, text: str) -> None:
        for letter in text:
            if self._x < COLUMNS:
                self.cells[self._y][self._x] = letter
            self._x += 1

    def _move(self, given: str, verb: str) -> None:
        if verb == "H":
            y, x = (
                ([int(number or 1) for number in given.split(";")] + [1, 1])[:2]
                if given
                else (1, 1)
            )
            self._y = min(LINES, y) - 1
            self._x = x - 1
        elif verb == "C":
            self._x += int(given or 1)
        elif verb == "K":
            self.cells[self._y][self._x :] = [" "] * max(0, COLUMNS - self._x)
        elif verb == "J":
            self.cells = [[" "] * COLUMNS for _ in range(LINES)]


class Terminal:
    """A program on its own terminal."""

    def __init__(self, program: Sequence[str], environment: Mapping[str, str]) -> None:
        self.screen = Screen()
        self.taken: float | None = None
        """Time of the program's first output."""
        self._fd, end = pty.openpty()
        fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        self._awaited: tuple[Callable[[Screen], bool], asyncio.Future[float]] | None = None
        self.began = time.monotonic()
        self._process = subprocess.Popen(
            [sys.executable, "-c", CONTROLLED, *program],
            env={**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor", **environment},
            stdin=end,
            stdout=end,
            stderr=end,
            start_new_session=True,
        )
        self.pid = self._process.pid
        os.close(end)
        os.set_blocking(self._fd, False)
        asyncio.get_running_loop().add_reader(self._fd, self._read)

    async def shows(self, look: Callable[[Screen], bool], what: str) -> float:
        """Wait until the screen matches; return the time of the first match; raises BenchError."""
        if look(self.screen):
            return time.monotonic()
        self._awaited = look, asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(PATIENCE):
                return await self._awaited[1]
        except TimeoutError:
            shown = "\n".join(self.screen.lines)
            raise BenchError(f"{what}: not shown within {PATIENCE:.0f} s:\n{shown}") from None
        finally:
            self._awaited = None

    async def key(self, keys: str, look: Callable[[Screen], bool]) -> float:
        """Press a key; return the milliseconds until the screen matches."""
        began = time.monotonic()
        self.press(keys)
        return (await self.shows(look, repr(keys)) - began) * 1e3

    def press(self, keys: str) -> None:
        """Press keys without waiting."""
        os.write(self._fd, keys.encode())

    async def close(self, keys: str) -> int:
        """Exit with these keys; return the exit code, also that of a kill."""
        self.press(keys)
        try:
            async with asyncio.timeout(DEADLINE):
                return await asyncio.to_thread(self._process.wait)
        finally:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            self._process.wait()
            asyncio.get_running_loop().remove_reader(self._fd)
            os.close(self._fd)

    def _read(self) -> None:
        now = time.monotonic()
        try:
            data = os.read(self._fd, 1 << 20)
        except (BlockingIOError, OSError):
            return
        self.taken = self.taken or now
        if _SYNC in data:
            os.write(self._fd, b"\x1b[?2026;2$y")
        self.screen.feed(data)
        if self._awaited is not None and self._awaited[0](self.screen):
            awaited = self._awaited[1]
            if not awaited.done():
                awaited.set_result(now)
