"""Everything that can be done, from the table of commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.widgets import Static

from draftsman_tui.dashboard.screens.dialog import Dialog

FILTERS = (
    "words              rows that say them; -word: that do not",
    "status:failed,dead_letter   also: status:waiting",
    "repo:pay  by:anna  agent:tidy  tag:urgent",
    "age>1h  age<30m    older, newer",
    "/time ?out/        a regular expression",
)


class Help(Dialog[None]):
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

    def _text(self) -> Text:
        text = Text()
        for group, lines in self._groups.items():
            text.append(f"\n{group}\n", "bold")
            for keys, name, help in lines:
                text.append(f"  {keys:<12} ", "bold").append(f"{name:<28} ").append(f"{help}\n")
        text.append("\nFilters, after /\n", "bold")
        for line in FILTERS:
            text.append(f"  {line}\n")
        return text
