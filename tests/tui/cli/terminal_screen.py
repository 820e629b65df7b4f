"""A terminal emulator for commands that draw on the whole screen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import pyte

from tests.tui.cli.cli_runner import Terminal, until


class ScreenView(Protocol):
    """Screen and keyboard of a terminal."""

    @property
    def lines(self) -> list[str]:
        """The screen."""

    def look(self) -> None:
        """Read new output."""

    def type(self, text: str) -> None:
        """Type characters in sequence."""

    def resize(self, columns: int, lines: int) -> None:
        """Resize it."""


class TerminalScreen(Terminal):
    """A command on an emulated terminal."""

    size = (120, 34)

    def __init__(self, *args: object, **env: str) -> None:
        self._drawn = pyte.Screen(*self.size)
        self._stream = pyte.ByteStream(self._drawn)
        super().__init__(*args, **{"TERM": "xterm-256color"} | env)

    @property
    def lines(self) -> list[str]:
        """The screen."""
        return [line.rstrip() for line in self._drawn.display]

    def look(self) -> None:
        """Read the next output."""
        assert self.read(), f"it ended:\n{self.plain[-2000:]}"

    def resize(self, columns: int, lines: int) -> None:
        """Resize the terminal, so that the command redraws."""
        self._drawn.resize(lines, columns)
        super().resize(columns, lines)

    def show(self, data: bytes) -> None:
        """Draw the screen."""
        super().show(data)
        self._stream.feed(data)


def see(view: ScreenView, *text: str) -> None:
    """Wait until all texts are on the screen at once."""
    see_that(view, lambda lines: all(word in "\n".join(lines) for word in text), repr(text))


def see_that(view: ScreenView, holds: Callable[[list[str]], bool], awaited: str) -> None:
    """Wait until a condition holds for the lines of the screen."""

    def there() -> bool:
        if holds(view.lines):
            return True
        view.look()
        return False

    try:
        until(there, awaited)
    except AssertionError as error:
        raise AssertionError(f"{error}; on the screen:\n" + "\n".join(view.lines)) from None
