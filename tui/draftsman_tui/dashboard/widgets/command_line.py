"""The line at the bottom: `:` for commands, `/` for filters, with what may come next above it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Final

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.suggester import Suggester
from textual.widgets import Input, Static

from draftsman_tui.common.output import one_line

Known = Callable[[str], Sequence[str]]
"""Returns what a line that was begun may become, the likeliest first."""
HINT: Final = "tab: complete   up: what was typed before   esc: back"
OFFERED: Final = 40
"""Completions that are shown at most."""


class CommandLine(Vertical):
    """Hidden until it is opened. `history` holds what was typed, by `:` and `/`."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Leave", show=False)]

    class Entered(Message):
        """Something was typed, for `:` or for `/`."""

        def __init__(self, kind: str, text: str) -> None:
            super().__init__()
            self.kind = kind
            self.text = text

    class Left(Message):
        """It was closed again."""

    def __init__(self, history: dict[str, list[str]]) -> None:
        super().__init__()
        self._history = history
        self.kind = ":"

    def compose(self) -> ComposeResult:
        """Show what may come next, and the line below it."""
        yield Static(classes="hint")
        with Horizontal():
            yield Static(classes="sign")
            yield CommandInput()

    @property
    def line(self) -> CommandInput:
        """Where it is typed."""
        return self.query_one(CommandInput)

    def open(self, kind: str, text: str, known: Known) -> None:
        """Take a line."""
        self.kind = kind
        self.query_one(".sign", Static).update(kind)
        self.add_class("open")
        self.line.begin(text, known, self._history.setdefault(kind, []))
        self.screen.set_focus(self.line)  # now, and not once other keys have gone elsewhere
        self._offer()

    def close(self) -> None:
        """Hide again, and remember what was typed."""
        past, text = self._history.setdefault(self.kind, []), self.line.value.strip()
        if text and self.has_class("open"):
            past[:] = [one for one in past if one != text] + [text]
        self._leave()

    def show_error(self, error: str) -> None:
        """Say beside the line what is wrong with it; it stays to be mended."""
        self._hint(Text(one_line(error)), wrong=True)

    @on(Input.Changed)
    def _offer(self) -> None:
        """Show what the line may become."""
        offered = self.line.offered
        words = "  ".join(one_line(one) for one in offered[:OFFERED])
        self._hint(Text(words or HINT), wrong=False)

    @on(Input.Submitted)
    def _enter(self, event: Input.Submitted) -> None:
        """Hand it on; whoever takes it closes the line."""
        event.stop()
        self.post_message(self.Entered(self.kind, event.value.strip()))

    def action_leave(self) -> None:
        """Close, and do nothing."""
        self._leave()

    def _leave(self) -> None:
        self.remove_class("open")
        self.post_message(self.Left())

    def _hint(self, text: Text, *, wrong: bool) -> None:
        text.no_wrap = not wrong
        text.overflow = "fold" if wrong else "ellipsis"
        hint = self.query_one(".hint", Static)
        hint.set_class(wrong, "wrong")
        hint.update(text)


class CommandInput(Input):
    """What is typed; tab takes one completion after the other."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "complete(1)", "Complete", show=False),
        Binding("shift+tab", "complete(-1)", "Complete", show=False),
        Binding("up", "past(-1)", "Earlier", show=False),
        Binding("down", "past(1)", "Later", show=False),
    ]

    def __init__(self) -> None:
        super().__init__(select_on_focus=False)
        self._known: Known = lambda _: ()
        self._past: list[str] = []
        self._at = 0
        self._round: Sequence[str] = ()
        """What tab goes through, from the line that was typed on."""

    @property
    def offered(self) -> list[str]:
        """The words that the last one may become."""
        return [one.rpartition(" ")[2] for one in self._known(self.value) if one != self.value]

    def begin(self, text: str, known: Known, past: list[str]) -> None:
        """Take a new line."""
        self._known, self._past, self._at, self._round = known, past, len(past), ()
        self.suggester = _Suggester(known)
        self.value = text
        self.cursor_position = len(text)

    def action_complete(self, by: int) -> None:
        """Take the next of what it may become."""
        if self.value not in self._round:
            self._round = (*self._known(self.value), self.value)
            at = -1 if by > 0 else len(self._round) - 1
        else:
            at = self._round.index(self.value)
        self._take(self._round[(at + by) % len(self._round)])

    def action_past(self, by: int) -> None:
        """Take what was typed before, or after that."""
        if 0 <= self._at + by <= len(self._past):
            self._at += by
            self._take(self._past[self._at] if self._at < len(self._past) else "")

    def _take(self, text: str) -> None:
        self.value = text
        self.cursor_position = len(text)


class _Suggester(Suggester):
    """Shows the likeliest completion behind the cursor."""

    def __init__(self, known: Known) -> None:
        super().__init__(use_cache=False, case_sensitive=True)
        self._known = known

    async def get_suggestion(self, value: str) -> str | None:
        """Return the whole line."""
        return next((one for one in self._known(value) if value and one.startswith(value)), None)
