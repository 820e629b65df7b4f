"""Dialog that follows the log of the processes of `draftsman up`."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.widgets import Static

from draftsman_tui.dashboard.dialogs.base import Dialog, Heading, safe

TAIL_BYTES: Final = 65536


class LogDialog(Dialog[None]):
    """Tail of a file; follows the end unless scrolled up."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("q,enter", "leave", "Back", show=False)]

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self._shown_size = -1

    def compose(self) -> ComposeResult:
        with Vertical(classes="box"):
            yield Heading(str(self._path))
            with VerticalScroll(classes="log"):
                yield Static(id="log")
            yield Static("following   esc: back", classes="hint")

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).focus()
        self.set_interval(1.0, self._follow)
        self._follow()

    def _follow(self) -> None:
        try:
            size = self._path.stat().st_size
            text = "" if size == self._shown_size else tail(self._path, size)
        except OSError as error:
            size = -1
            text = f"{self._path}: {error.strerror}"
        if size == self._shown_size:
            return
        scroll = self.query_one(VerticalScroll)
        at_end = self._shown_size < 0 or scroll.scroll_offset.y >= scroll.max_scroll_y
        self._shown_size = size
        self.query_one("#log", Static).update(safe(text or "No log output yet"))
        if at_end:
            scroll.scroll_end(animate=False)


def tail(path: Path, size: int) -> str:
    """Return the complete lines in the last TAIL_BYTES of a file."""
    with path.open("rb") as file:
        file.seek(max(0, size - TAIL_BYTES))
        lines = file.read().decode("utf-8", "replace").splitlines()
    return "\n".join(lines[1:] if size > TAIL_BYTES else lines)
