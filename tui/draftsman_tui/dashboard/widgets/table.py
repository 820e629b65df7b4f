"""Table widget: renders the visible rows, and keeps the cursor on its row."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import accumulate, compress
from typing import Any, ClassVar, Final

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip

from draftsman.formats.invisible import one_line
from draftsman_tui.dashboard.tables.grouping import GroupHead, without_heads
from draftsman_tui.dashboard.tables.resource import Resource
from draftsman_tui.dashboard.widgets.column_layout import (
    LEAD,
    ColumnLayout,
    PlacedColumn,
    fit,
    gap,
    layout,
    max_shift,
)
from draftsman_tui.dashboard.widgets.cursor_list import CursorList

_ROLES = ("key", "dim", "calm", "busy", "asks", "warns", "bad", "good", "denied")
LOADING: Final = "loading …"
NOTCH: Final = 3
"""Rows per wheel notch."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Display settings of a table: order, columns, whether it is filtered.

    `unknown` is the sentence about a value of the filter that nothing has.
    """

    sort: str | None = None
    down: bool = False
    columns: tuple[str, ...] = ()
    filtered: bool = False
    unknown: str = ""


class ResourceTable(CursorList):
    """Table of a resource's rows, which can be marked for commands on several rows.

    A click selects, on the head sorts, with Ctrl marks; a double click opens; a drag marks a range.
    Every action of the mouse also has a key.
    """

    HEAD: ClassVar[int] = 1
    ALLOW_SELECT: ClassVar[bool] = False
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"resource-table--{part}" for part in ("head", "cursor", "mark", "rule", *_ROLES)
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "shift(-1)", "Columns to the left", show=False, id="left"),
        Binding("right", "shift(1)", "Columns to the right", show=False, id="right"),
        Binding("pageup,ctrl+b", "page(-1)", "Page up", show=False, id="page-up"),
        Binding("pagedown,ctrl+f", "page(1)", "Page down", show=False, id="page-down"),
    ]

    @dataclass
    class Headed(Message):
        """A column head was clicked."""

        head: str

    class Marked(Message):
        """The marks changed."""

    @dataclass
    class AtEnd(Message):
        """The cursor was moved beyond the last row (1) or the first (-1)."""

        direction: int

    def __init__(self, *, supervised: bool = False) -> None:
        """Create an empty table; `supervised`: `draftsman up` starts a worker for it."""
        super().__init__()
        self.marked: set[str] = set()
        """Keys of the marked rows."""
        self._last_mark = 0
        self._dragged_from: int | None = None
        self._stays_first = True
        """Whether the cursor stays on the first row when others become the first."""
        self._released: set[str] = set()
        """Keys of the rows that commands change: the cursor does not follow them elsewhere."""
        self._supervised = supervised
        self.now = datetime.now(UTC)
        self._resource: Resource[Any] | None = None
        self._shape = Shape()
        self._rows: Sequence[Any] | None = None
        self._keys: list[str] = []
        self._shift = 0
        self._laid_out: tuple[Any, ...] = ()
        self._measured: Sequence[Any] | None = None
        self._empty: frozenset[int] = frozenset()
        """The columns that are hidden because no row has a text for them."""
        self._layout = ColumnLayout((), False, False)
        self._starts: Sequence[int] = range(1)
        """First line of each row, and the number of all lines."""

    @property
    def row(self) -> Any | None:
        """The row under the cursor; None on the head of a group."""
        line = self._line
        return None if isinstance(line, GroupHead) else line

    @property
    def head(self) -> GroupHead | None:
        """The head of a group under the cursor."""
        line = self._line
        return line if isinstance(line, GroupHead) else None

    @property
    def _line(self) -> Any | None:
        return self._rows[self.cursor] if self._rows and self.cursor < len(self._rows) else None

    @property
    def length(self) -> int:
        return len(self._keys)

    @property
    def keys(self) -> Sequence[str]:
        """Keys of all rows, in display order."""
        return self._keys

    @property
    def lines(self) -> Sequence[Any]:
        """All rows and heads of groups, in display order."""
        return self._rows or ()

    @property
    def rows(self) -> Sequence[Any]:
        """All rows, in display order; those of folded groups included."""
        return list(without_heads(self.lines))

    @property
    def selected(self) -> list[Any]:
        """The marked rows, or else those of the group or the row under the cursor."""
        if self._resource is None:
            return []
        marked = [row for row in self.rows if self._resource.key(row) in self.marked]
        if marked or self._line is None:
            return marked
        return list(self.head.rows) if self.head is not None else [self._line]

    def choose(self) -> list[Any]:
        """Return the selected rows for a command; the cursor stays on its row from now on."""
        self._stays_first = False
        return self.selected

    def release(self, rows: Iterable[Any]) -> None:
        """Keep the cursor in its place when these rows leave it, as a command changes them."""
        if self._resource is not None:
            self._released.update(map(self._resource.key, rows))

    def release_none(self) -> None:
        """Let the cursor stay on its row again, as no command changes it."""
        self._released.clear()

    def show(
        self,
        resource: Resource[Any],
        rows: Sequence[Any] | None,
        now: datetime,
        shape: Shape | None = None,
    ) -> None:
        """Show rows and heads of groups; None while loading.

        The cursor stays on its row, and the row on its screen line; a cursor that was not moved
        stays at the top, where the rows are that need a person, and so does one that was moved
        beyond the first row. From a row that is gone, or that a command moved, the cursor goes to
        the next that was shown below.
        """
        is_other = resource is not self._resource
        old_keys = [] if is_other else self._keys
        offset = 0 if is_other else self.span(self.cursor)[0] - self.top
        self._resource = resource
        self._rows = rows
        self.now = now
        self._shape = shape or Shape()
        self._keys = [self._key_of(resource, line) for line in self.lines]
        if rows is not None:
            self.marked &= {resource.key(row) for row in self.rows}
        if is_other:
            self._shift = 0
            self._empty = frozenset()
            self.release_none()
        if rows is not None:
            self._empty = self._empty_columns(resource)
        self._measure()
        if is_other or not rows:
            self._stays_first = True
        if self._stays_first:
            self.cursor = 0
        elif old_keys:
            self.cursor = self._successor(old_keys)
        self.cursor = self._beside_rules(self._clamp(self.cursor), 1)
        self.go_to_row(0 if self._stays_first else self.span(self.cursor)[0] - offset)
        self.keep_in_view()
        self.refresh()

    def _successor(self, old_keys: Sequence[str]) -> int:
        """Return the index of the row under the cursor, or of the next one if it left its place."""
        places = {key: index for index, key in enumerate(self._keys)}
        key = old_keys[self.cursor]
        if key in places and key not in self._released:
            return places[key]
        stay = [other in places and other not in self._released for other in old_keys]
        below = [*compress(old_keys[self.cursor + 1 :], stay[self.cursor + 1 :])]
        above = [*compress(old_keys[: self.cursor], stay[: self.cursor])][::-1]
        is_in_place = (
            key in places
            and _group_of(old_keys, self.cursor) == _group_of(self._keys, places[key])
            and all(places[other] < places[key] for other in above[:1])
            and all(places[other] > places[key] for other in below[:1])
        )
        if is_in_place:
            return places[key]
        self._released.discard(key)
        rows = [places[other] for other in (*below, *above) if not self._is_rule(places[other])]
        return rows[0] if rows else places.get(key, self.cursor)

    def _empty_columns(self, resource: Resource[Any]) -> frozenset[int]:
        """Return the optional columns for which no row has a text, visible or not."""
        rows = self.rows
        optional = [nth for nth, column in enumerate(resource.columns) if column.optional]
        cell = [column.cell for column in resource.columns]
        return frozenset(
            nth for nth in optional if not any(cell[nth](row, self.now).text for row in rows)
        )

    @property
    def has_two_lines(self) -> bool:
        """Whether each row has two lines, because the columns do not fit into one."""
        resource = self._resource
        is_own = bool(self._shape.columns or self._shift)
        return resource is not None and not is_own and self.size.width < resource.two_lines_below

    def _measure(self) -> None:
        """Place the rows on lines."""
        self._starts = range(len(self._keys) + 1)
        if self.has_two_lines:
            heights = (1 if isinstance(line, GroupHead) else 2 for line in self.lines)
            self._starts = list(accumulate(heights, initial=0))
        self.virtual_size = Size(self.size.width, self._starts[-1] + self.HEAD)

    def span(self, index: int) -> tuple[int, int]:
        if index >= len(self._keys):
            return self._starts[-1], self._starts[-1] + 1
        return self._starts[index], self._starts[index + 1]

    def _index_at(self, line: int) -> int:
        """Return the index of the row on a line."""
        return bisect_right(self._starts, line) - 1

    def on_resize(self) -> None:
        """Place the rows again: their lines depend on the width."""
        self._measure()
        self.keep_in_view()

    def tick(self, now: datetime) -> None:
        """Redraw elapsed times."""
        self.now = now
        self.refresh()

    def go_to(self, key: str) -> None:
        """Move the cursor to the row with a key, if present."""
        if key in self._keys:
            self.move_to(self._keys.index(key))

    def action_move(self, by: int) -> None:
        first = self._beside_rules(0, 1)
        if (by > 0 and self.cursor == len(self._keys) - 1) or (by < 0 and self.cursor == first):
            self.post_message(self.AtEnd(1 if by > 0 else -1))
        beyond_first = by < 0 and self.cursor + by < 0
        self.move_to(self.cursor + by)
        self._stays_first = beyond_first

    def move_to(self, index: int, *, scroll: bool = True) -> None:
        """Move the cursor to a row; rules between groups are passed."""
        step = 1 if index > self.cursor else -1
        self._stays_first = False
        super().move_to(self._beside_rules(self._clamp(index), step), scroll=scroll)

    def _beside_rules(self, index: int, step: int) -> int:
        """Return the index of the next row that is no rule, in the direction of `step` if any."""
        end = len(self.lines)
        for direction in (step, -step):
            for nth in range(index, end if direction > 0 else -1, direction):
                if nth < end and not self._is_rule(nth):
                    return nth
        return index

    def _is_rule(self, index: int) -> bool:
        line = self.lines[index]
        return isinstance(line, GroupHead) and line.is_rule

    def keep_in_view(self) -> None:
        """Show the row under the cursor, and the head of its group right above it."""
        super().keep_in_view()
        above = self.cursor - 1
        if above < 0 or not isinstance(self.lines[above], GroupHead):
            return
        if (start := self.span(above)[0]) < self.top:
            self.go_to_row(start)

    def go_to_row(self, row: int) -> None:
        """Scroll to a line, or to the next one that begins a row."""
        super().go_to_row(self._starts[bisect_left(self._starts, row, hi=len(self._keys))])

    def action_end(self, last: bool) -> None:
        self.action_move(self.length if last else -self.length)

    def action_page(self, pages: float) -> None:
        lines = max(2, self.size.height - 2)
        self.action_move(round(pages * (lines // 2 if self.has_two_lines else lines)))

    def action_shift(self, by: int) -> None:
        """Scroll the columns."""
        if self._resource is not None:
            chosen = self._shape.columns
            end = max_shift(self._resource.columns, self.size.width, chosen)
            if by < 0 or self.column_layout.right:
                self._shift = max(0, min(self._shift + by, max(end, 0 if chosen else 1)))
                self._measure()
                self.keep_in_view()
                self.refresh()

    def mark(self) -> None:
        """Toggle the mark of the row under the cursor, and move to the next."""
        if self.length:
            self.toggle(self.cursor)
            self.move_to(self.cursor + 1)

    def toggle(self, index: int) -> None:
        """Toggle the mark of a row."""
        keys = self.keys_at(index)
        if keys <= self.marked:
            self.marked -= keys
        else:
            self.marked |= keys
        self._last_mark = index
        self._marks_changed()

    def mark_range(self) -> None:
        """Mark from the last mark to the cursor."""
        self.mark_between(self._last_mark, self.cursor)

    def mark_between(self, start: int, end: int) -> None:
        """Mark a range of rows."""
        first, last = sorted((start, end))
        for index in range(first, min(last + 1, self.length)):
            self.marked |= self.keys_at(index)
        self._last_mark = end
        self._marks_changed()

    def unmark(self) -> None:
        """Clear all marks."""
        self.marked.clear()
        self._marks_changed()

    def keep_marked(self, keys: Iterable[str]) -> None:
        """Clear all marks but those of the given keys."""
        self.marked.intersection_update(keys)
        self._marks_changed()

    def _marks_changed(self) -> None:
        self.refresh()
        self.post_message(self.Marked())

    def keys_at(self, index: int) -> set[str]:
        """Return the key of a row, or those of the rows of a group's head."""
        line = self.lines[index]
        if isinstance(line, GroupHead) and line.is_rule:
            return set()
        if isinstance(line, GroupHead) and self._resource is not None:
            return {self._resource.key(row) for row in line.rows}
        return {self._keys[index]}

    @staticmethod
    def _key_of(resource: Resource[Any], line: Any) -> str:
        return line.key if isinstance(line, GroupHead) else resource.key(line)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Record the start of a drag."""
        self._dragged_from = self.row_at(event.y)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Mark the dragged range."""
        start = self._dragged_from
        end = self.row_at(event.y)
        if event.button == 1 and start is not None and end is not None and end != start:
            self.mark_between(start, end)
            self.move_to(end)

    def on_mouse_up(self) -> None:
        self._dragged_from = None

    def on_click(self, event: events.Click) -> None:
        """Sort, mark, select or open."""
        index = self.row_at(event.y)
        if index is None:
            head = self.head_at(event.x) if event.y == 0 else None
            if head is not None:
                self.post_message(self.Headed(head))
        elif event.ctrl:
            self.toggle(index)
            self.move_to(index)
        else:
            self.move_to(index)
            if event.chain == 2:
                self.post_message(self.Opened())

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Move the cursor, so that new rows do not scroll the table back to it."""
        event.stop()
        self.action_move(NOTCH)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.action_move(-NOTCH)

    def row_at(self, y: int) -> int | None:
        """Return the index of the row on a line, if any."""
        index = self._index_at(y - 1 + self.top)
        return index if y > 0 and index < len(self._keys) else None

    def head_at(self, x: int) -> str | None:
        """Return the sortable column head at a position."""
        for placed in self.column_layout.placed:
            if placed.x <= x <= placed.x + placed.size and placed.column.order is not None:
                return placed.column.head
        return None

    @property
    def column_layout(self) -> ColumnLayout:
        """The visible columns, with widths for the visible rows."""
        top = self.top
        laid_out = (self._resource, self.size, self._shape, self._shift, top, self.now)
        if laid_out != self._laid_out or self._rows is not self._measured:
            self._laid_out = laid_out
            self._measured = self._rows
            columns = () if self._resource is None else self._resource.columns
            self._layout = layout(
                columns,
                self.size.width,
                chosen=self._shape.columns,
                shift=self._shift,
                content=self._content(top),
                empty=self._empty,
                sort=self._shape.sort,
                two_lines=self.has_two_lines,
            )
        return self._layout

    def _content(self, top: int) -> list[int]:
        """Return the longest text width of each column in the visible rows.

        Where all of them are folded, those of the first rows.
        """
        if self._resource is None:
            return []
        lines = self.lines[self._index_at(top) : self._index_at(top + self.visible_rows) + 1]
        rows = [line for line in lines if not isinstance(line, GroupHead)]
        rows = rows or [*self.rows[: self.visible_rows]]
        texts = zip(*(self._resource.cells(row, self.now) for row in rows), strict=True)
        return [max(cell_len(cell.text) for cell in column) for column in texts]

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        if self._resource is None:
            return Strip.blank(width, self.rich_style)
        if y == 0:
            return self._head()
        index = self._index_at(y - 1 + self.top)
        if index >= len(self._keys):
            return self._message_line(self._empty_text() if not self._keys and y == 2 else "")
        line = self.lines[index]
        is_cursor = index == self.cursor
        base = self.rich_style
        if is_cursor:
            base += self._partial("cursor")
        if isinstance(line, GroupHead) and line.is_rule:
            return self._rule(line)
        if y - 1 + self.top > self._starts[index]:
            return self._second_line(line, base + Style(bold=False))
        is_marked = self.keys_at(index) <= self.marked
        lead = ("▸" if is_cursor else " ") + ("●" if is_marked else " ")
        segments = [Segment(lead, base + self._partial("mark"))]
        if isinstance(line, GroupHead):
            segments.append(Segment(one_line(line.text), base + self._partial("key")))
        else:
            segments += self._cells(line, self.column_layout.placed, base)
        return Strip(segments).adjust_cell_length(width, base)

    def _second_line(self, line: Any, base: Style) -> Strip:
        base += self._partial("dim")
        segments = [Segment(" " * LEAD, base)]
        segments += self._cells(line, self.column_layout.second, base)
        return Strip(segments).adjust_cell_length(self.size.width, base)

    def _cells(self, line: Any, columns: Sequence[PlacedColumn], base: Style) -> Iterator[Segment]:
        """Yield the cells of a row in columns."""
        cells = [] if self._resource is None else self._resource.cells(line, self.now)
        between = Segment(" " * gap(self.size.width), base)
        for placed in columns:
            cell = cells[placed.nth]
            style = base + self._partial(cell.role) if cell.role else base
            yield Segment(fit(cell.text, placed.size, placed.column.right), style)
            yield between

    def _rule(self, head: GroupHead) -> Strip:
        text = Segment(f"── {one_line(head.label)} · {head.count} ", self._rule_style)
        line = "─" * max(0, self.size.width - cell_len(text.text))
        return Strip([text, Segment(line, self.rich_style + self._partial("rule"))])

    @property
    def _rule_style(self) -> Style:
        return self.rich_style + self._partial("key") + Style(bold=True)

    def _head(self) -> Strip:
        style = self.rich_style + self._partial("head")
        layout = self.column_layout
        text = "« " if layout.left else "  "
        for placed in layout.placed:
            head = placed.column.heading
            arrow = self._arrow(placed)
            if len(head) + len(arrow) <= placed.size:
                head = head + arrow
                arrow = ""
            text += fit(head, placed.size, placed.column.right) + arrow.ljust(gap(self.size.width))
        strip = Strip([Segment(text, style)]).adjust_cell_length(self.size.width, style)
        if layout.right:
            strip = Strip([*strip.crop(0, self.size.width - 1), Segment("»", style)])
        return strip

    def _arrow(self, placed: PlacedColumn) -> str:
        if placed.column.head != self._shape.sort:
            return ""
        return "↓" if self._shape.down else "↑"

    def _empty_text(self) -> str:
        if self._rows is None or self._resource is None:
            return LOADING
        if self._shape.filtered:
            unknown = self._shape.unknown or f"Nothing in {self._resource.name} matches."
            return f"{unknown} Esc clears the filter"
        return self._resource.empty_text(supervised=self._supervised)

    def _message_line(self, text: str) -> Strip:
        strip = Strip([Segment(f"  {one_line(text)}", self.rich_style + self._partial("dim"))])
        return strip.adjust_cell_length(self.size.width, self.rich_style)

    def _partial(self, part: str) -> Style:
        return self.get_component_rich_style(f"resource-table--{part}", partial=True)


def _group_of(keys: Sequence[str], index: int) -> str:
    """Return the key of the head above a row; "" outside groups."""
    return next((key for key in reversed(keys[:index]) if GroupHead.is_key(key)), "")
