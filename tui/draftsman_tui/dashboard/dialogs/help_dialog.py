"""Help: commands with their keys, and the filter syntax."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.widgets import Static

from draftsman_tui.dashboard.dialogs.base import Dialog, Heading

NAME_WIDTH: Final = 19
"""Width of a command's name with its arguments; longer arguments follow the help."""
FILTERS: Final = (
    ("words  -word", "rows that contain, or do not contain, the word"),
    ("status:failed", "multiple: status:failed,dead_letter; also status:waiting"),
    ("repo:pay", "also agent:tidy  tag:urgent  source:slack  for:anna"),
    ("by:me", "by:anna; me is the current user, also in for:me"),
    ("age>1h  age<30m", "older than, newer than"),
    ("/time ?out/", "regular expression (RE2)"),
)


class HelpDialog(Dialog[None]):
    """Commands by group, and filters."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,question_mark", "leave", "Back", show=False)
    ]

    def __init__(self, groups: Mapping[str, Sequence[tuple[str, str, str]]]) -> None:
        super().__init__()
        self._groups = groups

    def compose(self) -> ComposeResult:
        with Vertical(classes="box"):
            yield Heading("Commands")
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
                fits = len(name) + len(takes) < NAME_WIDTH
                description = Text(help) if fits else Text.assemble(help, (f"  {takes}", "italic"))
                label = Text.assemble(name, (f" {takes}", "italic")) if fits else Text(name)
                table.add_row(keys, label, description)
        table.add_row()
        table.add_row(Text("Filters", "bold underline"), Text("entered after /"))
        for example, explanation in FILTERS:
            table.add_row("", Text(example), Text(explanation))
        return table
