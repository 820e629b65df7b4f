"""Lines of a screen: its title, problems and decisions to undo below it, and its keys."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from rich.text import Text
from textual.content import Content
from textual.widgets import Static

from draftsman.formats import times
from draftsman.formats.invisible import one_line
from draftsman_tui.dashboard.frame.messages import ConnectionLost
from draftsman_tui.dashboard.worker.supervised import SupervisedProcesses


class Title(Static):
    """Title line of a screen."""

    def show(self, *facts: str, read_only: bool) -> None:
        """Show facts, and the read-only mode."""
        texts = [*facts, "read-only"] if read_only else facts
        self.update(
            Text(one_line(" · ".join(texts)), no_wrap=True, overflow="ellipsis"), layout=False
        )


SHOWN: Final = 60.0
"""Seconds to show an error of a process; the log keeps it."""


class Banner(Static):
    """Shown while the database is unreachable, with a countdown to the next attempt."""

    _lost: ConnectionLost | None = None

    def on_mount(self) -> None:
        self.set_interval(0.5, self._draw)

    def show(self, lost: ConnectionLost | None) -> None:
        """Show the banner, or hide it with None."""
        self._lost = lost
        self.set_class(lost is not None, "lost")
        self._draw()

    def _draw(self) -> None:
        if self._lost is None:
            return
        self.update(Text(banner_text(self._lost, time.monotonic())))


def banner_text(lost: ConnectionLost, now: float) -> str:
    """Return the text for a monotonic time."""
    sentences = ["Database unreachable"]
    if lost.read_at is not None:
        sentences.append(f"Showing data from {times.span(now - lost.read_at)} ago")
    seconds = round(lost.retry_at - now)
    sentences.append(f"Retrying in {seconds} s" if seconds > 0 else "Retrying now")
    if lost.embedded:
        sentences.append("To start a stopped server: draftsman db start")
    return f"{'. '.join(sentences)}. ({one_line(lost.error)})"


class Notice(Static):
    """Shown for a while after an error of a process of `draftsman up`."""

    def show(self, processes: SupervisedProcesses) -> None:
        """Show a recent error with its age, or hide the notice."""
        age = time.monotonic() - processes.error_at
        is_visible = bool(processes.last_error) and age < SHOWN
        self.set_class(is_visible, "visible")
        if is_visible:
            error = one_line(processes.last_error)
            text = f"{error} · {times.span(age)} ago · :processes shows the log"
            self.update(Text(text, no_wrap=True, overflow="ellipsis"))


class UndoLine(Static):
    """Shown while a decision is in its undo window, with the time that is left."""

    def show(self, text: str) -> None:
        """Show the line; "" hides it."""
        self.set_class(bool(text), "visible")
        if text:
            self.update(Text(text, no_wrap=True, overflow="ellipsis"))


Key = tuple[str, str, bool]
"""Label of the key, command name, and whether the command is permitted."""


class KeyBar(Static):
    """The bottom line of a screen: keys of commands, also clickable; denied ones are dimmed.

    A single text, updated only on change. Textual's footer, with a widget for each key, caused half
    of the cost of moving the cursor.
    """

    _shown_keys: Sequence[Key] = ()

    def show(self, keys: Sequence[Key]) -> None:
        if keys != self._shown_keys:
            self._shown_keys = keys
            self.update(Content("  ").join(map(_key_content, keys)), layout=False)


def _key_content(key: Key) -> Content:
    label, name, allowed = key
    if not allowed:
        return Content.from_markup("[dim]$key $name[/dim]", key=label, name=name)
    action = f"[@click=screen.command('{name}')]"
    return Content.from_markup(f"[bold $accent]$key[/] {action}$name[/]", key=label, name=name)
