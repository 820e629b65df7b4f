"""One of a few words, side by side: left, right or space takes another, the mouse any."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import Static


class SegmentedChoice(Static, can_focus=True):
    """The mark is a sign as well as a colour."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "turn(-1)", "Previous", show=False),
        Binding("right,space", "turn(1)", "Next", show=False),
        Binding("enter", "submit", "Hand in", show=False),
    ]

    class Submitted(Message):
        """What it stands in is to be handed in."""

    def __init__(self, words: Sequence[str], chosen: str | None = None) -> None:
        super().__init__()
        self._words = tuple(words)
        self._place = self._words.index(chosen) if chosen in self._words else 0

    @property
    def value(self) -> str:
        """The word that is chosen."""
        return self._words[self._place]

    def on_mount(self) -> None:
        """Show them."""
        self._draw()

    def action_turn(self, by: int) -> None:
        """Take the next word, or the one before."""
        self._place = (self._place + by) % len(self._words)
        self._draw()

    def action_submit(self) -> None:
        """Hand in."""
        self.post_message(self.Submitted())

    def on_click(self, event: events.Click) -> None:
        """Take the word under the mouse."""
        end = 0
        for place, word in enumerate(self._words):
            end += len(word) + 4
            if event.x < end:
                self._place = place
                self._draw()
                return

    def _draw(self) -> None:
        line = Text(no_wrap=True)
        for place, word in enumerate(self._words):
            here = place == self._place
            line.append(f"{'●' if here else '○'} {word}  ", "bold" if here else "dim")
        self.update(line)
