"""Base classes of dialogs, and text helpers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, ClassVar, Final, TypeVar

from rich.cells import cell_len
from rich.text import Text
from textual.actions import SkipAction
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Static

from draftsman.errors import DraftsmanError
from draftsman.formats.invisible import one_line
from draftsman_tui.terminal.output import plain

T = TypeVar("T")
BORDER: Final = 6
"""Cells of a border beside its title."""
NARROWEST: Final = 0.9
"""Part of the screen that a dialog has at least, before its size is known."""
Do = Callable[[Any], Awaitable[T]]
"""Handles the input of a dialog; on DraftsmanError, the dialog stays open."""


class Dialog(ModalScreen[T]):
    """Dialog that returns a value, or None if dismissed: a box with a title, a body and a hint."""

    BOX: ClassVar[str] = "box"
    """Classes of the box."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Back", id="back"),
        # priority: keys typed right after Tab must go to the next field
        Binding("tab", "go(1)", "Next", show=False, priority=True),
        Binding("shift+tab", "go(-1)", "Previous", show=False, priority=True),
        Binding("ctrl+c", "copy_or_quit", show=False),
    ]

    def __init__(self, title: str = "", hint: str = "") -> None:
        super().__init__()
        self._title = title
        self._hint = hint

    def compose(self) -> ComposeResult:
        with Vertical(classes=self.BOX):
            yield Heading(self._title)
            yield from self.body()
            yield Static("", classes="error")
            yield Static(safe(self._hint), classes="hint")

    def body(self) -> ComposeResult:
        """Return the widgets between the title and the hint."""
        yield from ()

    def show_notice(self, text: str) -> None:
        """Show a message above the key hints."""
        line = self.query_one(".error", Static)
        line.update(safe(one_line(text)))
        line.set_class(bool(text), "visible")

    def action_leave(self) -> None:
        """Dismiss without a value."""
        self.dismiss(None)

    async def action_copy_or_quit(self) -> None:
        """Copy the selection; without a selection, quit after confirmation."""
        try:
            self.action_copy_text()
        except SkipAction:
            await self.app.run_action("help_quit")

    def action_go(self, by: int) -> None:
        """Move the focus to the next field, or the previous for -1."""
        self.focus_next() if by > 0 else self.focus_previous()


class SubmitDialog(Dialog[T]):
    """Dialog that submits while it is open, and keeps its input on errors."""

    BUSY: Final = "submitting …"

    def __init__(self, do: Do[T], title: str = "", hint: str = "") -> None:
        super().__init__(title, hint)
        self._do = do
        self.busy = False
        """Whether a submission is in progress, which closes the dialog if it succeeds."""

    def attempt(self, value: object) -> None:
        """Submit a value, unless a submission is in progress."""
        if not self.busy:
            self.busy = True
            self.show_notice(self.BUSY)
            self.run_worker(partial(self._attempt, value))  # type: ignore[arg-type]

    def failed(self, error: DraftsmanError) -> None:
        """Show why the submission failed."""
        self.show_notice(str(error))

    async def _attempt(self, value: object) -> None:
        try:
            result = await self._do(value)
        except DraftsmanError as error:
            self.busy = False
            self.failed(error)
        else:
            if self.is_current:  # `escape` may have dismissed it meanwhile
                self.dismiss(result)


class Heading(Static):
    """Title of a dialog: in the border of its box, or above the body if it does not fit there."""

    def __init__(self, text: str = "") -> None:
        super().__init__(classes="heading")
        self._title = text
        self._short = ""

    def show(self, text: str, short: str = "") -> None:
        """Show a title, or `short` where it does not fit; further lines are above the body."""
        self._title = text
        self._short = short
        self._draw()

    def on_mount(self) -> None:
        self._draw()

    def on_resize(self) -> None:
        self._draw()

    def _draw(self) -> None:
        box = self.parent
        if not isinstance(box, Widget):
            return
        title, _, details = self._title.partition("\n")
        width = (box.size.width or round(self.app.size.width * NARROWEST)) - BORDER
        if self._short and cell_len(title) > width >= cell_len(self._short):
            title = self._short
        fits = cell_len(title) <= width
        box.border_title = safe(title) if fits else None
        self.display = bool(details) or not fits
        self.update(safe(details if fits else self._title))


async def return_value(value: T) -> T:
    """Return the value unchanged; the default `do` of a dialog."""
    return value


def safe(text: str, style: str = "") -> Text:
    """Return untrusted text without control characters and markup."""
    return Text(plain(text), style)
