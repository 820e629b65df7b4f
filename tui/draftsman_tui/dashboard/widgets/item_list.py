"""A part of the job screen: items of rows, with a cursor on one of them, or scrolled freely.

It stays where it is whatever comes; at its end, where that is what counts, it goes on with it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.segment import Segment
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from draftsman_tui.dashboard.job.row_layout import Item, Row
from draftsman_tui.dashboard.widgets import row_renderer

GUTTER = 2


@dataclass(frozen=True, slots=True)
class ScrollPosition:
    """How a part was left: the item that stays where it is, and whether the end was followed."""

    key: str | None = None
    below: int | None = None
    """Rows of the screen above it; None: wherever it fits."""
    following: bool = False


class ItemList(ScrollView, can_focus=True):
    """Items of rows, of one part after the other."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {*row_renderer.CLASSES, "lines--cursor"}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Up", show=False, id="up"),
        Binding("down,j", "move(1)", "Down", show=False, id="down"),
        Binding("pageup,b", "turn(-1)", "Page up", show=False, id="page-up"),
        Binding("pagedown,space", "turn(1)", "Page down", show=False, id="page-down"),
        Binding("home,g", "end(False)", "First", show=False, id="first"),
        Binding("end,G", "end(True)", "Last", show=False, id="last"),
    ]

    class Opened(Message):
        """An item was clicked twice."""

    class Moved(Message):
        """Another item is chosen, or the end is followed or not any more."""

    def __init__(self) -> None:
        super().__init__()
        self.picks = False
        """Whether a cursor chooses an item."""
        self.following = False
        """Whether the end is kept in view."""
        self._follows = False
        self._draw: Callable[[int], Sequence[Item]] | None = None
        self._items: Sequence[Item] = ()
        self._rows: list[Row] = []
        self._starts: list[int] = []
        self._cursor = 0
        self._wanted: ScrollPosition | None = None

    @property
    def chosen(self) -> Item | None:
        """The item under the cursor."""
        if not self.picks or self._cursor >= len(self._items):
            return None
        found = self._items[self._cursor]
        return found if found.key else None

    @property
    def text(self) -> str:
        """All that is drawn, in view or not."""
        return "\n".join("".join(cell.text for cell in row) for row in self._rows)

    def show(self, draw: Callable[[int], Sequence[Item]]) -> None:
        """Show what is drawn for so many cells; stay where it is, or at the end."""
        self._draw = draw
        self._redraw()

    @property
    def cursor_line(self) -> int | None:
        """The line of the screen on which the item under the cursor begins."""
        if self.chosen is None:
            return None
        return self.region.y + self._span(self._cursor)[0] - round(self.scroll_y)

    def take(self, place: ScrollPosition | None, *, picks: bool, follows: bool) -> None:
        """Begin with another part, where it was left; by itself at its end if that counts."""
        self.picks, self._follows = picks, follows
        self.following = follows if place is None else place.following
        self._items, self._cursor, self._wanted = (), 0, place

    def leave(self) -> ScrollPosition:
        """Return how this part is left."""
        if self._wanted is not None:
            return self._wanted
        key, below = self._anchor()
        return ScrollPosition(key, below, self.following)

    def follow(self) -> None:
        """Keep the end in view from now on."""
        self.following = True
        self._to_end()
        self.post_message(self.Moved())

    def action_move(self, by: int) -> None:
        """Move the cursor by an item, or all by a row."""
        if not self.picks:
            self._scroll(by)
            return
        top, high = round(self.scroll_y), self.size.height
        start, end = self._span(self._cursor)
        if by > 0 and end > top + high:
            self._scroll(by)  # first see the rest of it
        elif by < 0 and start < top:
            self._scroll(by)
        else:
            self._choose(self._cursor + by)

    def action_turn(self, pages: int) -> None:
        """Go by screens."""
        by = pages * max(1, self.size.height - 1)
        self._scroll(by)
        if self.picks:
            at = round(self.scroll_y) + (self.size.height - 1 if by > 0 else 0)
            self._choose(bisect_right(self._starts, at) - 1, keep=False)

    def action_end(self, last: bool) -> None:
        """Go to the beginning or the end."""
        if self.picks:
            self._choose(len(self._items) - 1 if last else 0)
        elif last:
            self._to_end()
        else:
            self._go_to(0)
        self._set_following()

    def on_click(self, event: events.Click) -> None:
        """Choose what the mouse is on."""
        place = event.get_content_offset_capture(self).y + round(self.scroll_y)
        if self.picks and place < len(self._rows):
            self._choose(bisect_right(self._starts, place) - 1, keep=False)
            if event.chain == 2:
                self.post_message(self.Opened())

    def on_mouse_scroll_up(self) -> None:
        """Stop following."""
        self.call_after_refresh(self._set_following)

    def on_mouse_scroll_down(self) -> None:
        """Follow again, at the end."""
        self.call_after_refresh(self._set_following)

    def on_resize(self) -> None:
        """Wrap anew."""
        self._redraw()

    def render_line(self, y: int) -> Strip:
        """Draw a row in view."""
        place, width, base = y + round(self.scroll_y), self._width, self.rich_style
        if place >= len(self._rows):
            return Strip.blank(width, base)
        lead = "  "
        start, end = self._span(self._cursor)
        if self.chosen is not None and start <= place < end:
            lead = "▸ " if place == start else "│ " if self._rows[place] else lead
            if place == start:
                base += self.get_component_rich_style("lines--cursor", partial=True)
        body = row_renderer.render_row(self, self._rows[place], base, width - GUTTER, cut=True)
        return Strip([Segment(lead, base), *body])

    @property
    def _width(self) -> int:
        """Cells beside the scrollbar."""
        return self.scrollable_content_region.width

    def _go_to(self, y: int) -> None:
        """Scroll, though the scrollbar may not know yet of rows that just came."""
        self.scroll_to(y=max(0, y), animate=False, immediate=True, force=True)

    def _redraw(self) -> None:
        if self._draw is None or not self._width:
            return
        place = self.leave()
        self._items = self._draw(max(1, self._width - GUTTER))
        self._rows, self._starts = [], []
        for item in self._items:
            self._starts.append(len(self._rows))
            self._rows += item.rows
        self.virtual_size = Size(self._width, len(self._rows))
        self._settle(place)
        self.refresh()

    def _anchor(self) -> tuple[str | None, int]:
        """Return what stays where it is: an item, and how many rows below the top it begins."""
        if not self._items:
            return None, 0
        top = round(self.scroll_y)
        at = self._cursor if self.picks else max(0, bisect_right(self._starts, top) - 1)
        return self._items[at].key, self._starts[at] - top

    def _settle(self, place: ScrollPosition) -> None:
        at = self._place(place.key)
        if self.following:
            self._to_end()
        elif at is None:
            self._choose(self._cursor, moves=False)
            return  # what is wanted may come yet
        elif place.below is None:
            self._choose(at)
        else:
            self._cursor = at
            self._go_to(self._starts[at] - place.below)
        self._wanted = None

    def _place(self, key: str | None) -> int | None:
        if key is None:
            return None
        return next((nth for nth, one in enumerate(self._items) if one.key == key), None)

    def _span(self, nth: int) -> tuple[int, int]:
        """Return the first row of an item, and the one after its last."""
        if nth >= len(self._starts):
            return 0, 0
        start = self._starts[nth]
        return start, start + len(self._items[nth].rows)

    def _choose(self, nth: int, *, keep: bool = True, moves: bool = True) -> None:
        self._cursor = max(0, min(nth, len(self._items) - 1))
        if keep:
            self._keep_in_view()
        if moves:
            self._wanted = None
            self._set_following()
            self.post_message(self.Moved())
        self.refresh()

    def _keep_in_view(self) -> None:
        top, high = round(self.scroll_y), max(1, self.size.height)
        start, end = self._span(self._cursor)
        if start < top:
            self._go_to(start)
        elif end > top + high:
            self._go_to(min(start, end - high))

    def _scroll(self, by: int) -> None:
        self._go_to(round(self.scroll_y) + by)
        self._set_following()

    def _to_end(self) -> None:
        self._cursor = max(0, len(self._items) - 1)
        self._go_to(len(self._rows) - self.size.height)

    def _set_following(self) -> None:
        """Follow where the end is in view, and only there."""
        last = self._cursor == len(self._items) - 1
        at_end = last if self.picks else self.scroll_y >= self.max_scroll_y
        if self._follows and at_end != self.following:
            self.following = at_end
            self.post_message(self.Moved())
