"""A terminal's screen, as far as a program of ours draws on it, and the terminal itself."""

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

COLUMNS, LINES = 120, 40
PATIENCE = 30.0
"""Seconds after which what has to be shown counts as broken."""
CONTROLLED = """import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])"""
"""Makes the terminal the one that controls the program."""
_SYNC = b"\x1b[?2026$p"
"""Asks whether the terminal shows frames as a whole; it does."""
_PART = re.compile(
    r"\x1b\[(?P<given>[0-9;?<>=]*)[ !$]*(?P<verb>[@-~])"
    r"|\x1b[\]P_^][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()][0-9A-Z]|\x1b[=>78cM]"
    r"|(?P<control>[\r\n\x08])|(?P<text>[^\x1b\r\n\x08]+)"
)
_CUT = re.compile(r"\x1b(?:\[[0-9;?<>= !$]*|[\]P_^][^\x07]*|[()])?\Z")


class Screen:
    """Cells of one width; colours are left out."""

    def __init__(self) -> None:
        self.cells = [[" "] * COLUMNS for _ in range(LINES)]
        self._x = self._y = 0
        self._rest = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    @property
    def lines(self) -> list[str]:
        """What each line says."""
        return ["".join(line).rstrip() for line in self.cells]

    def feed(self, data: bytes) -> None:
        """Draw."""
        text = self._rest + self._decoder.decode(data)
        cut = _CUT.search(text)
        self._rest = text[cut.start() :] if cut else ""
        for part in _PART.finditer(text, 0, cut.start() if cut else len(text)):
            if (said := part["text"]) is not None:
                self._write(said)
            elif part["verb"]:
                self._move(part["given"], part["verb"])
            elif part["control"] == "\n":
                self._y = min(LINES - 1, self._y + 1)
            elif part["control"] == "\r":
                self._x = 0

    def _write(self, said: str) -> None:
        for letter in said:
            if self._x < COLUMNS:
                self.cells[self._y][self._x] = letter
            self._x += 1

    def _move(self, given: str, verb: str) -> None:
        if verb == "H":
            y, x = ([int(one or 1) for one in given.split(";")] + [1, 1])[:2] if given else (1, 1)
            self._y, self._x = min(LINES, y) - 1, x - 1
        elif verb == "C":
            self._x += int(given or 1)
        elif verb == "K":
            self.cells[self._y][self._x :] = [" "] * max(0, COLUMNS - self._x)
        elif verb == "J":
            self.cells = [[" "] * COLUMNS for _ in range(LINES)]


class Terminal:
    """A program on a terminal of its own."""

    def __init__(self, program: Sequence[str], environment: Mapping[str, str]) -> None:
        self.screen = Screen()
        self.taken: float | None = None
        """When the program wrote its first bytes."""
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
        """Return when the screen first looked like that. Raises Broken."""
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
        """Press; return the milliseconds until the screen looks like that."""
        began = time.monotonic()
        self.press(keys)
        return (await self.shows(look, repr(keys)) - began) * 1e3

    def press(self, keys: str) -> None:
        """Press, and wait for nothing."""
        os.write(self._fd, keys.encode())

    async def close(self, keys: str) -> int:
        """Leave by these keys; return the exit code, or that of a kill."""
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
            found = self._awaited[1]
            if not found.done():
                found.set_result(now)
