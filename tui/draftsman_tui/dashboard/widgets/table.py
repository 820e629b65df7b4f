"""The table: draws the rows in view, keeps the cursor on its row whatever comes and goes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar, Final

from rich.cells import set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from draftsman_tui.dashboard.resource import Cell, Column, Resource

LEAST: Final = 10
"""Cells of the column that takes what is left."""
_ROLES = ("key", "dim", "calm", "busy", "asks", "warns", "bad", "good")


class ResourceTable(ScrollView, can_focus=True):
    """Rows of one resource at a time."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"resource-table--{part}" for part in ("head", "cursor", "mark", *_ROLES)
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Up", show=False, id="up"),
        Binding("down,j", "move(1)", "Down", show=False, id="down"),
        Binding("pageup", "turn(-1)", "Page up", show=False, id="page-up"),
        Binding("pagedown", "turn(1)", "Page down", show=False, id="page-down"),
        Binding("home,g", "move(-1000000)", "First", show=False, id="first"),
        Binding("end,G", "move(1000000)", "Last", show=False, id="last"),
    ]

    class Opened(Message):
        """A row was clicked twice."""

    class Moved(Message):
        """The cursor is on another row."""

    class AtEnd(Message):
        """The cursor wants to go beyond the last row (1), or before the first (-1)."""

        def __init__(self, way: int) -> None:
            super().__init__()
            self.way = way

    def __init__(self) -> None:
        super().__init__()
        self.marked: set[str] = set()
        self.place = 0
        self.now = datetime.now(UTC)
        self._resource: Resource[Any] | None = None
        self._rows: Sequence[Any] = ()
        self._keys: list[str] = []
        self._last_mark = 0

    @property
    def row(self) -> Any | None:
        """The row under the cursor."""
        return self._rows[self.place] if self.place < len(self._rows) else None

    @property
    def rows(self) -> Sequence[Any]:
        """All rows, in the order shown."""
        return self._rows

    @property
    def keys(self) -> Sequence[str]:
        """The keys of all rows, in the order shown."""
        return self._keys

    @property
    def chosen(self) -> list[Any]:
        """The rows that are marked; if none is, the one under the cursor."""
        marked = [
            row for row, key in zip(self._rows, self._keys, strict=True) if key in self.marked
        ]
        return marked or ([] if self.row is None else [self.row])

    def show(self, resource: Resource[Any], rows: Sequence[Any], now: datetime) -> None:
        """Show these rows; the cursor stays on its row, and that where it is on the screen."""
        other = resource is not self._resource
        old = None if other or not self._keys else self._keys[self.place]
        offset = 0 if other else self.place - round(self.scroll_y)
        self._resource, self._rows, self.now = resource, rows, now
        self._keys = [resource.key(row) for row in rows]
        self.marked &= set(self._keys)
        self.virtual_size = Size(self.size.width, len(rows) + 1)
        stays = resource.follows and self.place == 0
        if other:
            self.place = 0
        elif old in self._keys and not stays:
            self.place = self._keys.index(old)
        self.place = max(0, min(self.place, len(rows) - 1))
        self.scroll_to(y=max(0, self.place - offset), animate=False, immediate=True)
        self._keep_in_view()
        self.refresh()

    def tick(self, now: datetime) -> None:
        """Draw anew what tells the time."""
        self.now = now
        self.refresh()

    def go_to(self, key: str) -> None:
        """Put the cursor on the row of this key, if it is there."""
        if key in self._keys:
            self._go(self._keys.index(key))

    def action_move(self, by: int) -> None:
        """Move the cursor."""
        if (by > 0 and self.place == len(self._rows) - 1) or (by < 0 and self.place == 0):
            self.post_message(self.AtEnd(1 if by > 0 else -1))
        self._go(self.place + by)

    def action_turn(self, pages: int) -> None:
        """Move the cursor by screens."""
        self.action_move(pages * max(1, self.size.height - 2))

    def mark(self) -> None:
        """Mark the row under the cursor, or take its mark off; go on to the next."""
        if self._keys:
            self.marked ^= {self._keys[self.place]}
            self._last_mark = self.place
            self._go(self.place + 1)

    def mark_range(self) -> None:
        """Mark from the last mark to the cursor."""
        first, last = sorted((self._last_mark, self.place))
        self.marked |= set(self._keys[first : last + 1])
        self._last_mark = self.place
        self.refresh()

    def unmark(self) -> None:
        """Take all marks off."""
        self.marked.clear()
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        """Put the cursor where the mouse is."""
        place = event.y - 1 + round(self.scroll_y)
        if event.y > 0 and place < len(self._rows):
            self._go(place)
            if event.chain == 2:
                self.post_message(self.Opened())

    def render_line(self, y: int) -> Strip:
        """Draw the head, or a row in view."""
        width = self.size.width
        if self._resource is None:
            return Strip.blank(width, self.rich_style)
        columns = _fitting(self._resource.columns, width)
        if y == 0:
            style = self._style("head")
            cells = [Cell(column.head) for _, column, _ in columns]
            return self._line("  ", cells, columns, style, style)
        place = y - 1 + round(self.scroll_y)
        if place >= len(self._rows):
            said = self._resource.empty if not self._rows and y == 2 else ""
            return Strip([Segment(f"  {said}", self._style("dim"))]).adjust_cell_length(
                width, self.rich_style
            )
        key, here = self._keys[place], place == self.place
        all_cells = self._resource.cells(self._rows[place], self.now)
        cells = [all_cells[nth] for nth, _, _ in columns]
        base = self.rich_style
        if here:
            base += self.get_component_rich_style("resource-table--cursor", partial=True)
        lead = ("▸" if here else " ") + ("●" if key in self.marked else " ")
        return self._line(lead, cells, columns, base, base + self._partial("mark"))

    def _line(
        self,
        lead: str,
        cells: Sequence[Cell],
        columns: Sequence[tuple[int, Column[Any], int]],
        base: Style,
        mark: Style,
    ) -> Strip:
        segments = [Segment(lead, mark)]
        for cell, (_, column, size) in zip(cells, columns, strict=True):
            style = base + self._partial(cell.role) if cell.role else base
            segments += [Segment(_fit(cell.text, size, column.right), style), Segment(" ", base)]
        return Strip(segments).adjust_cell_length(self.size.width, base)

    def _style(self, part: str) -> Style:
        return self.rich_style + self._partial(part)

    def _partial(self, part: str) -> Style:
        return self.get_component_rich_style(f"resource-table--{part}", partial=True)

    def _go(self, place: int) -> None:
        place = max(0, min(place, len(self._rows) - 1))
        if place != self.place:
            self.place = place
            self.post_message(self.Moved())
        self._keep_in_view()
        self.refresh()

    def _keep_in_view(self) -> None:
        top, fitting = round(self.scroll_y), max(1, self.size.height - 1)
        if self.place < top:
            self.scroll_to(y=self.place, animate=False, immediate=True)
        elif self.place >= top + fitting:
            self.scroll_to(y=self.place - fitting + 1, animate=False, immediate=True)


def _fitting(columns: Sequence[Column[Any]], width: int) -> list[tuple[int, Column[Any], int]]:
    """Return place, column and cells of those that a screen of this width shows."""
    shown = [(nth, column) for nth, column in enumerate(columns) if column.from_width <= width]
    fixed = sum(column.width + 1 for _, column in shown)
    rest = max(LEAST, width - 3 - fixed)
    return [(nth, column, column.width or rest) for nth, column in shown]


def _fit(text: str, size: int, right: bool) -> str:
    fitted = set_cell_size(text, size)
    if fitted.rstrip() != text.rstrip() and len(text) > 1:
        return set_cell_size(text, size - 1) + "…"
    return " " * (size - len(text)) + text if right and text.isascii() else fitted
