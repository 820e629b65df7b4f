"""Item list of the job screen, with a cursor or free scrolling.

It keeps its position when items change, and can follow the end.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.segment import Segment
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.strip import Strip

from draftsman_tui.dashboard.jobs.details.row_layout import Item, Row
from draftsman_tui.dashboard.widgets import row_renderer
from draftsman_tui.dashboard.widgets.cursor_list import CursorList

GUTTER = 2


@dataclass(frozen=True, slots=True)
class ScrollPosition:
    """Saved scroll position: the anchor item, and whether the end is followed."""

    key: str | None = None
    below: int | None = None
    """Rows between the top and the item; None: scroll it into view."""
    following: bool = False


class ItemList(CursorList):
    """List of items, reused for each tab."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {*row_renderer.CLASSES, "lines--cursor"}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("pageup,b,ctrl+b", "page(-1)", "Page up", show=False, id="page-up"),
        Binding("pagedown,space,ctrl+f", "page(1)", "Page down", show=False, id="page-down"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.selectable = False
        """Whether a cursor selects an item."""
        self.following = False
        """Whether the end is kept in view."""
        self._follows = False
        self._render_items: Callable[[int], Sequence[Item]] | None = None
        self._items: Sequence[Item] = ()
        self._rows: list[Row] = []
        self._starts: list[int] = []
        self._pending_position: ScrollPosition | None = None
        self._match: str | None = None
        """Key of the item that a search found."""

    @property
    def selected(self) -> Item | None:
        """The item under the cursor."""
        if not self.selectable or self.cursor >= len(self._items):
            return None
        item = self._items[self.cursor]
        return item if item.key else None

    @property
    def text(self) -> str:
        """Text of all rows, visible or not."""
        return "\n".join("".join(cell.text for cell in row) for row in self._rows)

    def span(self, index: int) -> tuple[int, int]:
        if index >= len(self._starts):
            return 0, 0
        start = self._starts[index]
        return start, start + len(self._items[index].rows)

    def show(self, draw: Callable[[int], Sequence[Item]]) -> None:
        """Set the function that renders the items for a width, keeping the position."""
        self._render_items = draw
        self._redraw()

    @property
    def length(self) -> int:
        return len(self._items)

    def reset(self, position: ScrollPosition | None, *, selectable: bool, follows: bool) -> None:
        """Prepare for another tab, at a saved position; by default at the end if it follows."""
        self.selectable = selectable
        self._follows = follows
        self.following = follows if position is None else position.following
        self._items = ()
        self.cursor = 0
        self._pending_position = position
        self._match = None

    def leave(self) -> ScrollPosition:
        """Return the current position."""
        if self._pending_position is not None:
            return self._pending_position
        key, below = self._anchor_item()
        return ScrollPosition(key, below, self.following)

    def follow(self) -> None:
        """Start to keep the end in view."""
        self.following = True
        self._to_end()
        self.post_message(self.Moved())

    def show_match(self, matches: Sequence[int], by: int = 0) -> int | None:
        """Scroll to a found item, and highlight it; None without matches.

        `matches` has indexes of items. `by` is 1 for the next, -1 for the previous, and 0 for the
        first in view or below, else the last. Returns the position in `matches`.
        """
        if not matches:
            self._match = None
            return None
        here = self._index_of(self._match)
        if by == 0 or here is None:
            at = min(bisect_left(matches, self._item_at(self.top)), len(matches) - 1)
        elif by > 0:
            at = bisect_right(matches, here) % len(matches)
        else:
            at = bisect_left(matches, here) - 1
        self._match = self._items[matches[at]].key
        self.following = False
        self.go_to_row(self._starts[matches[at]] - self.visible_rows // 2)
        self._set_following()
        self.refresh()
        return at % len(matches)

    def clear_match(self) -> None:
        """Remove the highlight of a found item."""
        self._match = None
        self.refresh()

    @property
    def items(self) -> Sequence[Item]:
        """All items."""
        return self._items

    def action_move(self, by: int) -> None:
        """Move the cursor by an item, or scroll by a row."""
        if not self.selectable:
            self._scroll(by)
            return
        start, end = self.span(self.cursor)
        if (by > 0 and end > self.top + self.visible_rows) or (by < 0 and start < self.top):
            self._scroll(by)  # first scroll through a long item
        else:
            self.move_to(self.cursor + by)

    def action_page(self, pages: float) -> None:
        by = round(pages * max(2, self.size.height - 1))
        self._scroll(by)
        if self.selectable:
            at = self.top + (self.size.height - 1 if by > 0 else 0)
            self.move_to(self._item_at(at), scroll=False)

    def action_end(self, last: bool) -> None:
        """Move to the start or the end."""
        if self.selectable:
            self.move_to(self.length - 1 if last else 0)
        elif last:
            self._to_end()
        else:
            self.go_to_row(0)
        self._set_following()

    def on_click(self, event: events.Click) -> None:
        """Select by click, open by double click."""
        row = event.get_content_offset_capture(self).y + self.top
        if self.selectable and row < len(self._rows):
            self.move_to(self._item_at(row), scroll=False)
            if event.chain == 2:
                self.post_message(self.Opened())

    def on_mouse_scroll_up(self) -> None:
        """Update the following state after the scroll."""
        self.call_after_refresh(self._set_following)

    def on_mouse_scroll_down(self) -> None:
        """Update the following state after the scroll."""
        self.call_after_refresh(self._set_following)

    def on_resize(self) -> None:
        self._redraw()

    def render_line(self, y: int) -> Strip:
        row_index = y + self.top
        width = self._width
        base = self.rich_style
        if row_index >= len(self._rows):
            return Strip.blank(width, base)
        lead = "  "
        start, end = self.span(self.cursor)
        if self.selected is not None and start + self.selected.title_rows <= row_index < end:
            start += self.selected.title_rows
            lead = "▸ " if row_index == start else "│ " if self._rows[row_index] else lead
            if row_index == start:
                base += self.get_component_rich_style("lines--cursor", partial=True)
        elif self._match is not None and self._items[self._item_at(row_index)].key == self._match:
            lead = "▸ "
            base += self.get_component_rich_style("lines--cursor", partial=True)
        body = row_renderer.render_row(self, self._rows[row_index], base, width - GUTTER, cut=True)
        return Strip([Segment(lead, base), *body])

    @property
    def _width(self) -> int:
        """Width without the scrollbar."""
        return self.scrollable_content_region.width

    def _redraw(self) -> None:
        if self._render_items is None or not self._width:
            return
        position = self.leave()
        self._items = self._render_items(max(1, self._width - GUTTER))
        self._rows = []
        self._starts = []
        for item in self._items:
            self._starts.append(len(self._rows))
            self._rows += item.rows
        self._set_length(len(self._rows))
        self._restore(position)
        self.refresh()

    def _set_length(self, rows: int) -> None:
        """Set the number of rows: the scrollbar depends on it, not the layout of the screen."""
        size = Size(self._width, rows)
        if size != self.virtual_size:
            self.set_reactive(ItemList.virtual_size, size)
            self._scroll_update(size)

    def _anchor_item(self) -> tuple[str | None, int]:
        """Return the anchor item's key, and its offset from the top."""
        if not self._items:
            return None, 0
        top = self.top
        at = self.cursor if self.selectable else max(0, self._item_at(top))
        return self._items[at].key, self._starts[at] - top

    def _restore(self, position: ScrollPosition) -> None:
        at = self._index_of(position.key)
        if self.following:
            self._to_end()
        elif at is None:
            self.cursor = self._clamp(self.cursor)
            self.keep_in_view()
            return  # the item may still be loaded
        elif position.below is None:
            self.move_to(at)
        else:
            self.cursor = at
            self.go_to_row(self._starts[at] - position.below)
        self._pending_position = None

    def _index_of(self, key: str | None) -> int | None:
        if not key:  # notes have no key
            return None
        return next((nth for nth, item in enumerate(self._items) if item.key == key), None)

    def move_to(self, index: int, *, scroll: bool = True) -> None:
        super().move_to(index, scroll=scroll)
        self._pending_position = None
        self._set_following()

    def _item_at(self, row: int) -> int:
        """Return the index of the item at a row."""
        return bisect_right(self._starts, row) - 1

    def _scroll(self, by: int) -> None:
        self.go_to_row(self.top + by)
        self._set_following()

    def _to_end(self) -> None:
        self.cursor = max(0, len(self._items) - 1)
        self.go_to_row(len(self._rows) - self.size.height)

    def _set_following(self) -> None:
        """Follow exactly while the end is in view."""
        last = self.cursor == len(self._items) - 1
        at_end = last if self.selectable else self.scroll_y >= self.max_scroll_y
        if self._follows and at_end != self.following:
            self.following = at_end
            self.post_message(self.Moved())
