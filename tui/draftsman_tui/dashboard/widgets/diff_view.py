"""Diff viewer that renders only the visible lines."""

from __future__ import annotations

from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from draftsman_tui.common.output import plain


class DiffView(ScrollView, can_focus=True):
    """Scrollable diff with navigation between files."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"patch--{part}" for part in ("head", "plus", "minus", "hunk")
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "scroll_down", "Down", show=False),
        Binding("k", "scroll_up", "Up", show=False),
        Binding("space,f", "page_down", "Page down", show=False),
        Binding("b", "page_up", "Page up", show=False),
        Binding("g", "scroll_home", "Start", show=False),
        Binding("G", "scroll_end", "End", show=False),
        Binding("right_square_bracket", "file(1)", "Next file", show=False),
        Binding("left_square_bracket", "file(-1)", "Previous file", show=False),
    ]

    def __init__(self, text: str, *, classes: str = "") -> None:
        super().__init__(classes=classes)
        self.replace(text)

    def replace(self, text: str) -> None:
        """Show another diff from its beginning."""
        self._lines = [line.expandtabs(4) for line in plain(text).split("\n")]
        while self._lines and not self._lines[-1]:
            self._lines.pop()
        self.files = _files(self._lines)
        """First line and name of each file."""
        width = max((cell_len(line) for line in self._lines), default=0)
        self.virtual_size = Size(width, len(self._lines))
        if self.is_mounted:
            self.scroll_home(animate=False)
            self.refresh()

    @property
    def current_file(self) -> int:
        """Index of the file at the top."""
        top = round(self.scroll_offset.y)
        return max(0, sum(start <= top for start, _ in self.files) - 1)

    def go_to(self, index: int) -> None:
        """Scroll to a file."""
        if 0 <= index < len(self.files):
            self.scroll_to(y=self.files[index][0], animate=False, immediate=True)

    def action_file(self, by: int) -> None:
        """Scroll to the next file, or the previous for -1."""
        self.go_to(max(0, min(self.current_file + by, len(self.files) - 1)))

    def render_line(self, y: int) -> Strip:
        x, top = self.scroll_offset
        index = round(top) + y
        if index >= len(self._lines):
            return Strip.blank(self.size.width, self.rich_style)
        line = self._lines[index]
        strip = Strip([Segment(line, self._style(line))])
        return strip.crop_extend(round(x), round(x) + self.size.width, self.rich_style)

    def _style(self, line: str) -> Style:
        if line.startswith(("diff ", "index ", "+++ ", "--- ")):
            part = "head"
        else:
            part = {"+": "plus", "-": "minus", "@": "hunk"}.get(line[:1], "")
        if not part:
            return self.rich_style
        return self.rich_style + self.get_component_rich_style(f"patch--{part}", partial=True)


def _files(lines: list[str]) -> list[tuple[int, str]]:
    """Return first line and name of each file, from `diff` lines or else from `---` lines."""
    heads = [
        (index, line.rpartition(" b/")[2])
        for index, line in enumerate(lines)
        if line.startswith("diff --git ")
    ]
    return heads or [
        (index, lines[index + 1][4:].partition("\t")[0].removeprefix("b/"))
        for index, line in enumerate(lines[:-1])
        if line.startswith("--- ") and lines[index + 1].startswith("+++ ")
    ]
