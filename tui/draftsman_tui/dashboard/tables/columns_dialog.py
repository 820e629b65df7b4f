"""Dialog to choose and order the columns of a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import OptionList, Static

from draftsman_tui.dashboard.dialogs.base import Dialog, Heading


class ColumnsDialog(Dialog[list[str]]):
    """Returns column heads in order; empty means those that fit. The first column is fixed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "toggle_column", "Show", id="show-column"),
        Binding("K,shift+up", "carry(-1)", "Up", id="column-up"),
        Binding("J,shift+down", "carry(1)", "Down", id="column-down"),
        Binding("f", "fitting", "Fit", id="columns-fitting"),
    ]

    def __init__(self, table: str, heads: Sequence[str], shown: Sequence[str]) -> None:
        super().__init__()
        self._table = table
        self._shown = set(shown)
        self._heads = [*shown, *(head for head in heads if head not in self._shown)]
        self._first = heads[0]

    def compose(self) -> ComposeResult:
        with Vertical(classes="box"):
            yield Heading(f"Columns of {self._table}")
            yield OptionList(*(self._line(head) for head in self._heads))
            keys = "space: show or hide   K J: move   f: fit to width   enter: apply   esc: back"
            yield Static(keys, classes="hint")

    def action_toggle_column(self) -> None:
        """Show or hide the column."""
        at = self._cursor
        if self._heads[at] != self._first:
            self._shown ^= {self._heads[at]}
            self._draw(at)

    def action_carry(self, by: int) -> None:
        """Move the column; the first column stays first."""
        at = self._cursor
        to = at + by
        if at > 0 and 0 < to < len(self._heads):
            self._heads[at], self._heads[to] = self._heads[to], self._heads[at]
            self._draw(to)

    def action_fitting(self) -> None:
        """Show the columns that fit the width."""
        self.dismiss([])

    def on_option_list_option_selected(self) -> None:
        self.dismiss([head for head in self._heads if head in self._shown])

    @property
    def _cursor(self) -> int:
        return self.query_one(OptionList).highlighted or 0

    def _draw(self, at: int) -> None:
        options = self.query_one(OptionList)
        options.clear_options()
        options.add_options([self._line(head) for head in self._heads])
        options.highlighted = at

    def _line(self, head: str) -> Text:
        return Text(f"{'●' if head in self._shown else '·'} {head}")
