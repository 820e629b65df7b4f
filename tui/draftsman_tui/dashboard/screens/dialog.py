"""What dialogs share: a box in the middle, Escape leaves without a word."""

from __future__ import annotations

from typing import ClassVar, TypeVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen

from draftsman_tui.cli.output import plain

T = TypeVar("T")


class Dialog(ModalScreen[T]):
    """Returns a value, None for none."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Back", id="back")]

    def action_leave(self) -> None:
        """Do nothing."""
        self.dismiss(None)


def safe(text: str, style: str = "") -> Text:
    """Return what people or programs said, so that it is shown and not obeyed."""
    return Text(plain(text), style)


def diff_text(text: str) -> Text:
    """Return a patch, its lines told apart by their first sign and by colour."""
    made = Text()
    styles = {"+": "green", "-": "red", "@": "cyan"}
    for line in plain(text).splitlines():
        head = line.startswith(("diff ", "index ", "+++", "---"))
        made.append(line + "\n", "bold" if head else styles.get(line[:1], ""))
    return made
