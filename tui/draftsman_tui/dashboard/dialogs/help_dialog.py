"""Everything that can be done, from the table of commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.widgets import Static

from draftsman_tui.dashboard.dialogs.base import Dialog

ROOM: Final = 19
"""Cells for the name of a command and what it takes; the rest is said behind its help."""
FILTERS: Final = (
    ("words  -word", "rows that say them; that do not"),
    ("status:failed", "several: status:failed,dead_letter; also status:waiting"),
    ("repo:pay", "also agent:tidy  tag:urgent  source:slack  for:anna"),
    ("by:me", "by:anna; me is whoever looks, in for: as well"),
    ("age>1h  age<30m", "older, newer"),
    ("/time ?out/", "a regular expression"),
)


class HelpDialog(Dialog[None]):
    """Keys, names, what they do; what a filter takes."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,question_mark", "leave", "Back", show=False)
    ]

    def __init__(self, groups: Mapping[str, Sequence[tuple[str, str, str]]]) -> None:
        super().__init__()
        self._groups = groups

    def compose(self) -> ComposeResult:
        """Show the groups one below the other."""
        with Vertical(classes="box"):
            yield Static("What can be done here", classes="heading")
            with VerticalScroll():
                yield Static(self._text())
            yield Static("ctrl+p: find a command   esc: back", classes="hint")

    def _text(self) -> Table:
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(no_wrap=True, style="bold")
        table.add_column(no_wrap=True)
        table.add_column()
        for group, lines in self._groups.items():
            table.add_row()
            table.add_row(Text(group, "bold underline"))
            for keys, name, help in lines:
                name, _, takes = name.partition(" ")
                beside = len(name) + len(takes) < ROOM
                said = Text(help) if beside else Text.assemble(help, (f"  {takes}", "dim"))
                shown = Text.assemble(name, (f" {takes}", "dim")) if beside else Text(name)
                table.add_row(keys, shown, said)
        table.add_row()
        table.add_row(Text("Filters", "bold underline"), Text("after /"))
        for given, about in FILTERS:
            table.add_row("", Text(given), Text(about))
        return table
