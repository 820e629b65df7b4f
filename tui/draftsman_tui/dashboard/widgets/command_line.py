"""Input line for commands (`:`) and filters (`/`), with completions above it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.suggester import Suggester
from textual.widgets import Input, Static

from draftsman.formats.invisible import one_line
from draftsman_tui.dashboard.tables.completion import Completer
from draftsman_tui.dashboard.widgets.inputs import CompletingInput

HINT: Final = "tab: complete   up: history   esc: back"
MAX_COMPLETIONS: Final = 40
"""Maximum completions shown."""


class CommandLine(Vertical):
    """Input line, hidden until opened. `history` has earlier input, by `:` and `/`."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Close", show=False)]

    @dataclass
    class Entered(Message):
        """A line was submitted."""

        kind: str
        text: str

    class Left(Message):
        """The line was closed."""

    def __init__(self, history: dict[str, list[str]]) -> None:
        super().__init__()
        self._history = history
        self.kind = ":"

    def compose(self) -> ComposeResult:
        yield Static(classes="hint")
        with Horizontal():
            yield Static(classes="sign")
            yield CommandInput()

    @property
    def line(self) -> CommandInput:
        """The input widget."""
        return self.query_one(CommandInput)

    def open(self, kind: str, text: str, completer: Completer) -> None:
        """Open the line with a text."""
        self.kind = kind
        self.query_one(".sign", Static).update(kind)
        self.add_class("open")
        self.line.begin(text, completer, self._history.setdefault(kind, []))
        self.screen.set_focus(self.line)  # immediately, so that the next keys go to the line
        self._show_completions()

    def close(self) -> None:
        """Close the line, and add its text to the history."""
        earlier = self._history.setdefault(self.kind, [])
        text = self.line.value.strip()
        if text and self.has_class("open"):
            earlier[:] = [entry for entry in earlier if entry != text] + [text]
        self._leave()

    def show_error(self, error: str) -> None:
        """Show an error above the line, which stays open."""
        self._hint(Text(one_line(error)), wrong=True)

    @on(Input.Changed)
    def _show_completions(self) -> None:
        """Show the completions."""
        line = self.line
        lines = [text for text in line.completions if text != line.value][:MAX_COMPLETIONS]
        text = "  ".join(one_line(text.rpartition(" ")[2]) for text in lines)
        self._hint(Text(text or HINT), wrong=False)

    @on(Input.Submitted)
    def _enter(self, event: Input.Submitted) -> None:
        """Post the line; the screen closes it."""
        event.stop()
        self.post_message(self.Entered(self.kind, event.value.strip()))

    def action_leave(self) -> None:
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


class CommandInput(CompletingInput):
    """Input with history, and completions that Tab cycles through."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "complete(1)", "Complete", show=False),
        Binding("shift+tab", "complete(-1)", "Complete", show=False),
        Binding("up", "earlier(-1)", "Earlier", show=False),
        Binding("down", "earlier(1)", "Later", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._earlier: list[str] = []
        self._at = 0
        self._cycle: Sequence[str] = ()
        """Completions that Tab cycles through."""

    def begin(self, text: str, completer: Completer, earlier: list[str]) -> None:
        """Start with a new line."""
        self.completer = completer
        self._earlier = earlier
        self._at = len(earlier)
        self._cycle = ()
        self.suggester = _Suggester(completer)
        self.set_text(text)

    def action_complete(self, by: int) -> None:
        """Insert the next completion, or the previous for -1."""
        if self.value not in self._cycle:
            self._cycle = (*self.completions, self.value)
            at = -1 if by > 0 else len(self._cycle) - 1
        else:
            at = self._cycle.index(self.value)
        self.set_text(self._cycle[(at + by) % len(self._cycle)])

    def action_earlier(self, by: int) -> None:
        """Insert the previous or next history entry."""
        if 0 <= self._at + by <= len(self._earlier):
            self._at += by
            self.set_text(self._earlier[self._at] if self._at < len(self._earlier) else "")


class _Suggester(Suggester):
    """Shows the best completion behind the cursor."""

    def __init__(self, completer: Completer) -> None:
        super().__init__(use_cache=False, case_sensitive=True)
        self._completer = completer

    async def get_suggestion(self, value: str) -> str | None:
        return next(
            (line for line in self._completer(value) if value and line.startswith(value)), None
        )
