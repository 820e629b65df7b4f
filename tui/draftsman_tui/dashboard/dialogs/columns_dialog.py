"""Chooses the columns of a table, and their order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import OptionList, Static

from draftsman_tui.dashboard.dialogs.base import Dialog


class ColumnsDialog(Dialog[list[str]]):
    """Returns the heads wanted, in their order; none: those that fit. The first names the row."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "turn", "Show", id="show-column"),
        Binding("K,shift+up", "carry(-1)", "Up", id="column-up"),
        Binding("J,shift+down", "carry(1)", "Down", id="column-down"),
        Binding("f", "fitting", "Those that fit", id="columns-fitting"),
    ]

    def __init__(self, table: str, heads: Sequence[str], shown: Sequence[str]) -> None:
        super().__init__()
        self._table = table
        self._shown = set(shown)
        self._heads = [*shown, *(head for head in heads if head not in self._shown)]
        self._first = heads[0]

    def compose(self) -> ComposeResult:
        """List them."""
        with Vertical(classes="box"):
            yield Static(f"Columns of {self._table}", classes="heading")
            yield OptionList(*(self._line(head) for head in self._heads))
            keys = "space: show or hide   K J: move   f: those that fit   enter: take   esc: back"
            yield Static(keys, classes="hint")

    def action_turn(self) -> None:
        """Show a column, or hide it."""
        at = self._at
        if self._heads[at] != self._first:
            self._shown ^= {self._heads[at]}
            self._draw(at)

    def action_carry(self, by: int) -> None:
        """Move a column; the one that names the row stays the first."""
        at = self._at
        to = at + by
        if at > 0 and 0 < to < len(self._heads):
            self._heads[at], self._heads[to] = self._heads[to], self._heads[at]
            self._draw(to)

    def action_fitting(self) -> None:
        """Show those that fit, whatever the width."""
        self.dismiss([])

    def on_option_list_option_selected(self) -> None:
        """Take them."""
        self.dismiss([head for head in self._heads if head in self._shown])

    @property
    def _at(self) -> int:
        return self.query_one(OptionList).highlighted or 0

    def _draw(self, at: int) -> None:
        offered = self.query_one(OptionList)
        offered.clear_options()
        offered.add_options([self._line(head) for head in self._heads])
        offered.highlighted = at

    def _line(self, head: str) -> Text:
        return Text(f"{'●' if head in self._shown else '·'} {head}")
