"""Inputs: with completions, and of several lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.strip import Strip
from textual.widgets import Input, OptionList, TextArea

from draftsman.formats.invisible import one_line
from draftsman_tui.dashboard.tables.completion import Completer, form_field

MAX_SHOWN: Final = 5
"""Maximum completions shown."""


class CompletingInput(Input):
    """Input with completions of its text, which its container shows."""

    def __init__(
        self, text: str = "", completer: Completer = lambda _: (), *, placeholder: str = ""
    ) -> None:
        super().__init__(text, placeholder=placeholder, select_on_focus=False)
        self.completer = completer

    @property
    def completions(self) -> Sequence[str]:
        """Completed lines, best first."""
        return self.completer(self.value)

    def set_text(self, text: str) -> None:
        """Set the text, with the cursor at its end."""
        self.value = text
        self.cursor_position = len(text)


class Autocomplete(Vertical):
    """Input with completions; with `multiple`, each word is completed."""

    def __init__(
        self, text: str, candidates: Sequence[str], *, placeholder: str = "", multiple: bool = False
    ) -> None:
        super().__init__()
        self._text = text
        self._completer = partial(form_field, candidates=tuple(candidates), multiple=multiple)
        self._placeholder = placeholder
        self._multiple = multiple
        self._completions: Sequence[str] = ()

    @property
    def line(self) -> CompletingInput:
        """The input."""
        return self.query_one(CompletingInput)

    @property
    def value(self) -> str:
        """The text."""
        return self.line.value

    def compose(self) -> ComposeResult:
        yield CompletingInput(self._text, self._completer, placeholder=self._placeholder)
        names = OptionList(classes="completions")
        names.can_focus = False
        yield names

    def on_input_changed(self) -> None:
        self._update_completions()

    def on_descendant_focus(self) -> None:
        self._update_completions()

    def on_descendant_blur(self) -> None:
        self._close()

    def on_key(self, event: events.Key) -> None:
        """Select, accept or close the list."""
        names = self.query_one(OptionList)
        if not names.has_class("open"):
            return
        if event.key in ("down", "up"):
            names.action_cursor_down() if event.key == "down" else names.action_cursor_up()
        elif event.key == "enter" and names.highlighted is not None:
            self.accept()
        elif event.key == "escape":
            self._close()
        else:
            return
        event.stop()
        event.prevent_default()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self._accept(event.option_index)
        self.line.focus()

    def accept(self) -> None:
        """Accept the highlighted completion, or the only one that continues the text, if any."""
        names = self.query_one(OptionList)
        if not names.has_class("open"):
            return
        if names.highlighted is not None:
            self._accept(names.highlighted)
            return
        text = self.value.casefold()
        continued = [name.casefold().startswith(text) for name in self._completions]
        if text.strip() and continued == [True]:
            self._accept(0)

    def _update_completions(self) -> None:
        completions = self.line.completions[:MAX_SHOWN]
        if not self.line.has_focus or not completions:
            self._close()
            return
        names = self.query_one(OptionList)
        if completions != self._completions:
            self._completions = completions
            names.clear_options()
            names.add_options([Text(one_line(self._label(text))) for text in completions])
        names.highlighted = None
        names.add_class("open")

    def _label(self, text: str) -> str:
        return text.replace(",", " ").split()[-1] if self._multiple else text

    def _accept(self, index: int) -> None:
        self.line.set_text(self._completions[index])
        self._close()

    def _close(self) -> None:
        self.query_one(OptionList).remove_class("open")


NEW_LINE: Final = frozenset({"ctrl+j", "shift+enter", "alt+enter", "ctrl+enter"})
"""Every terminal sends at least the first."""


class MultilineInput(TextArea):
    """Text area that grows with its text, up to the limit of the style sheet."""

    @dataclass
    class Submitted(Message):
        """The text was submitted."""

        text: str

    def __init__(self, text: str = "", *, placeholder: str = "") -> None:
        super().__init__(
            text, placeholder=placeholder, tab_behavior="focus", compact=True,
            highlight_cursor_line=False, show_line_numbers=False,
        )  # fmt: skip
        self.move_cursor(self.document.end)

    async def _on_key(self, event: events.Key) -> None:
        if event.key == "enter":
            event.stop()
            event.prevent_default()
            self.post_message(self.Submitted(self.text))
        elif event.key in NEW_LINE:
            event.stop()
            event.prevent_default()
            self.insert("\n")
        else:
            await super()._on_key(event)

    def render_line(self, y: int) -> Strip:
        """Render a line, none without columns: Textual cannot wrap a placeholder in them."""
        return super().render_line(y) if self.content_size.width else Strip([])
