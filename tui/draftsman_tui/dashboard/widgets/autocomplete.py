"""A line with what may be meant below it: down and up walk there, Tab or Enter takes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Input, OptionList

from draftsman_tui.common.output import one_line

SHOWN: Final = 5
"""Names that are offered at once."""


class Autocomplete(Vertical):
    """An Input, and a list that is there while it helps. `several` words are completed each."""

    def __init__(
        self, text: str, known: Sequence[str], *, placeholder: str = "", several: bool = False
    ) -> None:
        super().__init__()
        self._text = text
        self._known = tuple(known)
        self._placeholder = placeholder
        self._several = several
        self._offered: list[str] = []

    @property
    def line(self) -> Input:
        """The line itself."""
        return self.query_one(Input)

    @property
    def value(self) -> str:
        """What stands there."""
        return self.line.value

    def compose(self) -> ComposeResult:
        """Put the list below the line."""
        yield Input(self._text, placeholder=self._placeholder, select_on_focus=False)
        names = OptionList(classes="offered")
        names.can_focus = False
        yield names

    def on_input_changed(self) -> None:
        """Offer what goes on with it."""
        self._offer()

    def on_descendant_focus(self) -> None:
        """Offer all where nothing is typed."""
        self._offer()

    def on_descendant_blur(self) -> None:
        """Offer nothing to who is elsewhere."""
        self._close()

    def on_key(self, event: events.Key) -> None:
        """Walk in the list, take from it, or leave it."""
        names = self.query_one(OptionList)
        if not names.has_class("open"):
            return
        if event.key in ("down", "up"):
            names.action_cursor_down() if event.key == "down" else names.action_cursor_up()
        elif event.key == "enter" and names.highlighted is not None:
            self.take()
        elif event.key == "escape":
            self._close()
        else:
            return
        event.stop()
        event.prevent_default()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Take what was clicked."""
        event.stop()
        self._take(event.option_index)
        self.line.focus()

    def take(self) -> None:
        """Take what is chosen in the list, if it is open and anything is."""
        names = self.query_one(OptionList)
        if names.has_class("open") and names.highlighted is not None:
            self._take(names.highlighted)

    def _offer(self) -> None:
        word = self._word.casefold()
        found = [name for name in self._known if word in name.casefold()]
        begins = [name for name in found if name.casefold().startswith(word)]
        ordered = [*begins, *(name for name in found if name not in begins)]
        offered = ordered[:SHOWN]
        if not self.line.has_focus or offered in ([], [self._word]):
            self._close()
            return
        names = self.query_one(OptionList)
        if offered != self._offered:
            self._offered = offered
            names.clear_options()
            names.add_options([Text(one_line(name)) for name in offered])
        names.highlighted = None
        names.add_class("open")

    def _take(self, place: int) -> None:
        kept = self.value[: len(self.value) - len(self._word)]
        self.line.value = f"{kept}{self._offered[place]}{' ' if self._several else ''}"
        self.line.action_end()
        self._close()

    def _close(self) -> None:
        self.query_one(OptionList).remove_class("open")

    @property
    def _word(self) -> str:
        """The word that is being typed."""
        if not self._several:
            return self.value.strip()
        return (
            "" if self.value.endswith((" ", ",")) else self.value.replace(",", " ").split(" ")[-1]
        )
