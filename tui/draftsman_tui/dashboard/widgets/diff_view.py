"""A patch of whatever length: draws the lines in view, goes from file to file."""

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
    """Its lines are told apart by their first sign and by colour."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"patch--{part}" for part in ("head", "plus", "minus", "hunk")
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "scroll_down", "Down", show=False),
        Binding("k", "scroll_up", "Up", show=False),
        Binding("space,f", "page_down", "Page down", show=False),
        Binding("b", "page_up", "Page up", show=False),
        Binding("g", "scroll_home", "Begin", show=False),
        Binding("G", "scroll_end", "End", show=False),
        Binding("right_square_bracket", "file(1)", "Next file", show=False),
        Binding("left_square_bracket", "file(-1)", "Previous file", show=False),
    ]

    def __init__(self, text: str, *, classes: str = "") -> None:
        super().__init__(classes=classes)
        self._lines = [line.expandtabs(4) for line in plain(text).split("\n")]
        while self._lines and not self._lines[-1]:
            self._lines.pop()
        self.files = _files(self._lines)
        """Where each file begins, and its name."""
        width = max((cell_len(line) for line in self._lines), default=0)
        self.virtual_size = Size(width, len(self._lines))

    @property
    def place(self) -> int:
        """The file that the first line in view is of, counted from 0."""
        top = round(self.scroll_offset.y)
        return max(0, sum(start <= top for start, _ in self.files) - 1)

    def go_to(self, place: int) -> None:
        """Put a file at the top."""
        if 0 <= place < len(self.files):
            self.scroll_to(y=self.files[place][0], animate=False, immediate=True)

    def action_file(self, by: int) -> None:
        """Go to the next file, or to the one before."""
        self.go_to(max(0, min(self.place + by, len(self.files) - 1)))

    def render_line(self, y: int) -> Strip:
        """Draw one line."""
        x, top = self.scroll_offset
        place = round(top) + y
        if place >= len(self._lines):
            return Strip.blank(self.size.width, self.rich_style)
        line = self._lines[place]
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
    """Return where each file begins and what it is called; `diff` lines where there are any."""
    heads = [
        (place, line.rpartition(" b/")[2])
        for place, line in enumerate(lines)
        if line.startswith("diff --git ")
    ]
    return heads or [
        (place, lines[place + 1][4:].partition("\t")[0].removeprefix("b/"))
        for place, line in enumerate(lines[:-1])
        if line.startswith("--- ") and lines[place + 1].startswith("+++ ")
    ]
