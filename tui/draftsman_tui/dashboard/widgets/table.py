"""The table: draws the rows in view, keeps the cursor on its row whatever comes and goes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar, Final

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip

from draftsman_tui.common.output import one_line
from draftsman_tui.dashboard.resource import Resource
from draftsman_tui.dashboard.widgets.column_layout import (
    ColumnLayout,
    PlacedColumn,
    fit,
    gap,
    layout,
    max_shift,
)
from draftsman_tui.dashboard.widgets.mouse_table import MouseTable

_ROLES = ("key", "dim", "calm", "busy", "asks", "warns", "bad", "good")
LOOKING: Final = "looking …"


@dataclass(frozen=True, slots=True)
class Shape:
    """How a table is shown: its order, its columns, whether a filter is on."""

    sort: str | None = None
    down: bool = False
    columns: tuple[str, ...] = ()
    narrowed: bool = False


class ResourceTable(MouseTable, can_focus=True):
    """Rows of one resource at a time."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"resource-table--{part}" for part in ("head", "cursor", "mark", *_ROLES)
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Up", show=False, id="up"),
        Binding("down,j", "move(1)", "Down", show=False, id="down"),
        Binding("left", "shift(-1)", "Columns to the left", show=False, id="left"),
        Binding("right", "shift(1)", "Columns to the right", show=False, id="right"),
        Binding("pageup", "turn(-1)", "Page up", show=False, id="page-up"),
        Binding("pagedown", "turn(1)", "Page down", show=False, id="page-down"),
        Binding("home,g", "move(-1000000)", "First", show=False, id="first"),
        Binding("end,G", "move(1000000)", "Last", show=False, id="last"),
    ]

    class Moved(Message):
        """The cursor is on another row."""

    class Marked(Message):
        """Other rows are marked."""

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
        self._shape = Shape()
        self._rows: Sequence[Any] | None = None
        self._keys: list[str] = []
        self._last_mark = 0
        self._shift = 0
        self._laid_out: tuple[Any, ...] = ()
        self._measured: Sequence[Any] | None = None
        self._layout = ColumnLayout((), False, False)

    @property
    def row(self) -> Any | None:
        """The row under the cursor."""
        return self._rows[self.place] if self._rows and self.place < len(self._rows) else None

    @property
    def cursor_line(self) -> int | None:
        """The line of the screen that the cursor is on, if there are rows."""
        return self.region.y + 1 + self.place - round(self.scroll_y) if self._keys else None

    @property
    def keys(self) -> Sequence[str]:
        """The keys of all rows, in the order shown."""
        return self._keys

    @property
    def rows(self) -> Sequence[Any]:
        """All rows, in the order shown."""
        return self._rows or ()

    @property
    def chosen(self) -> list[Any]:
        """The rows that are marked; if none is, the one under the cursor."""
        both = zip(self.rows, self._keys, strict=True)
        marked = [row for row, key in both if key in self.marked]
        return marked or ([] if self.row is None else [self.row])

    def show(
        self,
        resource: Resource[Any],
        rows: Sequence[Any] | None,
        now: datetime,
        shape: Shape | None = None,
    ) -> None:
        """Show these rows, None while they are looked for.

        The cursor stays on its row, and that where it is on the screen.
        """
        other = resource is not self._resource
        old = None if other or not self._keys else self._keys[self.place]
        offset = 0 if other else self.place - round(self.scroll_y)
        self._resource, self._rows, self.now = resource, rows, now
        self._shape = shape or Shape()
        self._keys = [resource.key(row) for row in self.rows]
        if rows is not None:
            self.marked &= set(self._keys)
        self.virtual_size = Size(self.size.width, len(self._keys) + 1)
        stays = resource.follows and self.place == 0
        if other:
            self.place = self._shift = 0
        elif old in self._keys and not stays:
            self.place = self._keys.index(old)
        self.place = max(0, min(self.place, len(self._keys) - 1))
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
            self.go(self._keys.index(key))

    def action_move(self, by: int) -> None:
        """Move the cursor."""
        if (by > 0 and self.place == len(self._keys) - 1) or (by < 0 and self.place == 0):
            self.post_message(self.AtEnd(1 if by > 0 else -1))
        self.go(self.place + by)

    def action_turn(self, pages: int) -> None:
        """Move the cursor by screens."""
        self.action_move(pages * max(1, self.size.height - 2))

    def action_shift(self, by: int) -> None:
        """Go on to the columns that have no room."""
        if self._resource is not None:
            chosen = self._shape.columns
            end = max_shift(self._resource.columns, self.size.width, chosen)
            if by < 0 or self.arranged.right:
                self._shift = max(0, min(self._shift + by, max(end, 0 if chosen else 1)))
                self.refresh()

    def mark(self) -> None:
        """Mark the row under the cursor, or take its mark off; go on to the next."""
        if self._keys:
            self.toggle(self.place)
            self.go(self.place + 1)

    def toggle(self, place: int) -> None:
        """Mark a row, or take its mark off."""
        self.marked ^= {self._keys[place]}
        self._last_mark = place
        self._marked()

    def mark_range(self) -> None:
        """Mark from the last mark to the cursor."""
        self.mark_between(self._last_mark, self.place)

    def mark_between(self, one: int, other: int) -> None:
        """Mark the rows from one to the other."""
        first, last = sorted((one, other))
        self.marked |= set(self._keys[first : last + 1])
        self._last_mark = other
        self._marked()

    def unmark(self) -> None:
        """Take all marks off."""
        self.marked.clear()
        self._marked()

    def keep(self, keys: Iterable[str]) -> None:
        """Leave only these marked, of those that are."""
        self.marked.intersection_update(keys)
        self._marked()

    def _marked(self) -> None:
        self.refresh()
        self.post_message(self.Marked())

    def row_at(self, y: int) -> int | None:
        """Return the place of the row on a line."""
        place = y - 1 + round(self.scroll_y)
        return place if y > 0 and place < len(self._keys) else None

    def head_at(self, x: int) -> str | None:
        """Return the head above a cell, where rows can be sorted by it."""
        for one in self.arranged.placed:
            if one.x <= x <= one.x + one.size and one.column.order is not None:
                return one.column.head
        return None

    @property
    def arranged(self) -> ColumnLayout:
        """The columns in view, as wide as the rows in view want them."""
        top = round(self.scroll_y)
        laid_out = (self._resource, self.size, self._shape, self._shift, top, self.now)
        if laid_out != self._laid_out or self._rows is not self._measured:
            self._laid_out, self._measured = laid_out, self._rows
            columns = () if self._resource is None else self._resource.columns
            content = self._content(top)
            shape = self._shape.columns, self._shift
            self._layout = layout(columns, self.size.width, *shape, content)
        return self._layout

    def _content(self, top: int) -> list[int]:
        """Return the cells of the longest text of each column in the rows in view."""
        if self._resource is None:
            return []
        rows = self.rows[top : top + max(1, self.size.height - 1)]
        texts = zip(*(self._resource.cells(row, self.now) for row in rows), strict=True)
        return [max(cell_len(cell.text) for cell in column) for column in texts]

    def render_line(self, y: int) -> Strip:
        """Draw the head, or a row in view."""
        width = self.size.width
        if self._resource is None:
            return Strip.blank(width, self.rich_style)
        if y == 0:
            return self._head()
        place = y - 1 + round(self.scroll_y)
        if place >= len(self._keys):
            return self._words(self._why_empty() if not self._keys and y == 2 else "")
        key, here = self._keys[place], place == self.place
        cells = self._resource.cells(self.rows[place], self.now)
        base = self.rich_style
        if here:
            base += self._partial("cursor")
        lead = ("▸" if here else " ") + ("●" if key in self.marked else " ")
        segments = [Segment(lead, base + self._partial("mark"))]
        for one in self.arranged.placed:
            cell = cells[one.nth]
            style = base + self._partial(cell.role) if cell.role else base
            segments += [Segment(fit(cell.text, one.size, one.column.right), style)]
            segments += [Segment(" " * gap(width), base)]
        return Strip(segments).adjust_cell_length(width, base)

    def _head(self) -> Strip:
        style, found = self.rich_style + self._partial("head"), self.arranged
        text = "« " if found.left else "  "
        for one in found.placed:
            head, arrow = one.column.head, self._arrow(one)
            if len(head) + len(arrow) <= one.size:
                head, arrow = head + arrow, ""
            text += fit(head, one.size, one.column.right) + arrow.ljust(gap(self.size.width))
        strip = Strip([Segment(text, style)]).adjust_cell_length(self.size.width, style)
        if found.right:
            strip = Strip([*strip.crop(0, self.size.width - 1), Segment("»", style)])
        return strip

    def _arrow(self, one: PlacedColumn) -> str:
        if one.column.head != self._shape.sort:
            return ""
        return "↓" if self._shape.down else "↑"

    def _why_empty(self) -> str:
        if self._rows is None or self._resource is None:
            return LOOKING
        if self._shape.narrowed:
            return f"No {self._resource.name} that the filter wants; esc takes it off"
        return self._resource.empty

    def _words(self, said: str) -> Strip:
        strip = Strip([Segment(f"  {one_line(said)}", self.rich_style + self._partial("dim"))])
        return strip.adjust_cell_length(self.size.width, self.rich_style)

    def _partial(self, part: str) -> Style:
        return self.get_component_rich_style(f"resource-table--{part}", partial=True)

    def go(self, place: int) -> None:
        """Put the cursor on a row."""
        place = max(0, min(place, len(self._keys) - 1))
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
