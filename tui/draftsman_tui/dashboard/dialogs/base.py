"""What dialogs share: a box in the middle, Escape leaves without a word."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any, ClassVar, Final, TypeVar

from rich.text import Text
from textual.actions import SkipAction
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen
from textual.widgets import Static

from draftsman.errors import DraftsmanError
from draftsman_tui.common.output import one_line, plain

T = TypeVar("T")
Do = Callable[[Any], Awaitable[T]]
"""Does what a dialog is for; raises DraftsmanError, and the dialog stays."""
Clock = Callable[[], datetime]


class Dialog(ModalScreen[T]):
    """Returns a value, None for none."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Back", id="back"),
        # at once: what is typed behind it belongs to the next field, however fast it comes
        Binding("tab", "go(1)", "Next", show=False, priority=True),
        Binding("shift+tab", "go(-1)", "Previous", show=False, priority=True),
        Binding("ctrl+c", "copy_or_quit", show=False),
    ]

    def action_leave(self) -> None:
        """Do nothing."""
        self.dismiss(None)

    async def action_copy_or_quit(self) -> None:
        """Copy what is selected; where nothing is, leave the dashboard, which asks."""
        try:
            self.action_copy_text()
        except SkipAction:
            await self.app.run_action("help_quit")

    def action_go(self, by: int) -> None:
        """Go to the next thing that takes keys, or to the one before."""
        self.focus_next() if by > 0 else self.focus_previous()


class SubmitDialog(Dialog[T]):
    """Does what it is for while it is open: where that fails it says why, and nothing is lost."""

    BUSY: Final = "a moment …"

    def __init__(self, do: Do[T]) -> None:
        super().__init__()
        self._do = do
        self._busy = False

    def attempt(self, given: object) -> None:
        """Try it with what is given, one try at a time."""
        if not self._busy:
            self._busy = True
            self.show_notice(self.BUSY)
            self.run_worker(partial(self._attempt, given))  # type: ignore[arg-type]

    def failed(self, error: DraftsmanError) -> None:
        """Say why it did not work."""
        self.show_notice(str(error))

    def show_notice(self, text: str) -> None:
        """Say something above the keys."""
        line = self.query_one(".error", Static)
        line.update(safe(one_line(text)))
        line.set_class(bool(text), "told")

    async def _attempt(self, given: object) -> None:
        try:
            done = await self._do(given)
        except DraftsmanError as error:
            self._busy = False
            self.failed(error)
        else:
            self.dismiss(done)


async def kept(given: T) -> T:
    """Do nothing with what is given but return it."""
    return given


def local() -> datetime:
    """Return the time by this machine's clock."""
    return datetime.now(UTC)


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
