"""What the processes of `up` log, as it comes."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.widgets import Static

from draftsman_tui.dashboard.dialogs.base import Dialog, safe

SHOWN: Final = 65536
"""Bytes of the end of the log that are shown."""


class LogDialog(Dialog[None]):
    """The end of a file; who has scrolled up stays there."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("q,enter", "leave", "Back", show=False)]

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self._seen = -1

    def compose(self) -> ComposeResult:
        """Show where it is, and what is in it."""
        with Vertical(classes="box"):
            yield Static(safe(str(self._path)), classes="heading")
            with VerticalScroll(classes="log"):
                yield Static(id="log")
            yield Static("it follows   esc: back", classes="hint")

    def on_mount(self) -> None:
        """Follow."""
        self.query_one(VerticalScroll).focus()
        self.set_interval(1.0, self._follow)
        self._follow()

    def _follow(self) -> None:
        try:
            size = self._path.stat().st_size
            text = "" if size == self._seen else tail(self._path, size)
        except OSError as error:
            size, text = -1, f"{self._path}: {error.strerror}"
        if size == self._seen:
            return
        scroll = self.query_one(VerticalScroll)
        at_end = self._seen < 0 or scroll.scroll_offset.y >= scroll.max_scroll_y
        self._seen = size
        self.query_one("#log", Static).update(safe(text or "nothing was logged yet"))
        if at_end:
            scroll.scroll_end(animate=False)


def tail(path: Path, size: int) -> str:
    """Return the whole lines among the last bytes of a file of that size."""
    with path.open("rb") as file:
        file.seek(max(0, size - SHOWN))
        lines = file.read().decode("utf-8", "replace").splitlines()
    return "\n".join(lines[1:] if size > SHOWN else lines)
