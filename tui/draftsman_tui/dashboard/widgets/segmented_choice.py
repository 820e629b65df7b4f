"""Segmented choice: options side by side, switched by left, right, space or mouse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import Static


class SegmentedChoice(Static, can_focus=True):
    """Choice whose selection is shown by a symbol, not only by color."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "turn(-1)", "Previous", show=False),
        Binding("right,space", "turn(1)", "Next", show=False),
        Binding("enter", "submit", "Submit", show=False),
    ]

    class Submitted(Message):
        """The form should be submitted."""

    def __init__(self, words: Sequence[str], chosen: str | None = None) -> None:
        super().__init__()
        self._words = tuple(words)
        self._index = self._words.index(chosen) if chosen in self._words else 0

    @property
    def value(self) -> str:
        """The selected option."""
        return self._words[self._index]

    def on_mount(self) -> None:
        self._draw()

    def action_turn(self, by: int) -> None:
        """Select the next option, or the previous for -1."""
        self._index = (self._index + by) % len(self._words)
        self._draw()

    def action_submit(self) -> None:
        self.post_message(self.Submitted())

    def on_click(self, event: events.Click) -> None:
        """Select the option under the mouse."""
        end = 0
        for index, word in enumerate(self._words):
            end += len(word) + 4
            if event.x < end:
                self._index = index
                self._draw()
                return

    def _draw(self) -> None:
        line = Text(no_wrap=True)
        for index, word in enumerate(self._words):
            is_selected = index == self._index
            line.append(f"{'●' if is_selected else '○'} {word}  ", "bold" if is_selected else "")
        self.update(line)
