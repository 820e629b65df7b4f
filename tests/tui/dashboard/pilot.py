"""Driver of a dashboard without a terminal: its keys and its screen."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from textual import events
from textual.pilot import Pilot
from textual.widgets import Static

from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman_testing.waits import until
from draftsman_tui.dashboard.app import Dashboard
from draftsman_tui.dashboard.frame.connection import Connection
from draftsman_tui.dashboard.jobs.details.screen import JobScreen
from draftsman_tui.dashboard.launch_options import LaunchOptions
from draftsman_tui.dashboard.questions.key_guard import KeyGuard

if TYPE_CHECKING:
    from draftsman_tui.dashboard.frame.connection import Connect


class DashboardPilot:
    """A dashboard, its keys and its screen."""

    def __init__(self, pilot: Pilot[Any], app: Dashboard) -> None:
        self.pilot = pilot
        self.app = app
        self._before_keys = ""

    @property
    def lines(self) -> list[str]:
        """The screen as text."""
        strips = self.app.screen._compositor.render_strips()
        return [strip.text.rstrip() for strip in strips]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def toasts(self) -> list[str]:
        """Notifications, the newest last, and the error of the input line."""
        wrong = self.app.screen.query("CommandLine.open .hint.wrong").results(Static)
        return [toast.message for toast in self.app._notifications] + [
            str(hint.content) for hint in wrong
        ]

    @property
    def keys(self) -> list[str]:
        """The keys of the rows and heads, without rules, in the order shown."""
        table = self.app.main.table
        pairs = zip(table.lines, table.keys, strict=True)
        return [key for line, key in pairs if not getattr(line, "is_rule", False)]

    @property
    def cursor_key(self) -> str | None:
        """The key of the row under the cursor."""
        table = self.app.main.table
        return table.keys[table.cursor] if table.keys else None

    @property
    def tab_text(self) -> str:
        """Text of the current tab of a job, visible or not."""
        screen = self.app.screen
        assert isinstance(screen, JobScreen)
        return screen.diff_pane.view.text if screen.diff_pane.display else screen.item_list.text

    async def press(self, *keys: str) -> None:
        self._before_keys = self.text
        await self.pilot.press(*keys)

    async def type(self, text: str) -> None:
        """Type into the line or dialog that is open."""
        names = {" ": "space", ":": "colon", "/": "slash", ",": "comma", "-": "minus"}
        await self.press(*(names.get(char, char) for char in text))

    async def paste(self, text: str) -> None:
        """Paste a text at the cursor."""
        self.app.post_message(events.Paste(text))
        await self.pilot.pause()

    async def command(self, line: str) -> None:
        """Enter a command, closing an open input line first."""
        if self.app.screen.query("CommandLine.open"):
            await self.press("escape")
        await self.press("colon")
        await self.paste(line)
        await self.press("enter")

    async def job(self, name: str, key: str = "") -> None:
        """Open a job and wait until it is loaded; then press the key of a tab."""
        await self.command(f"job {name}")
        await self.dialog("JobScreen")
        await self._until(lambda: getattr(self.app.screen, "snapshot", None), name)
        if key:
            await self.press(key)

    async def read(self, *words: str) -> None:
        """Wait until the current tab of a job contains all the texts."""
        await self._until(lambda: all(word in self.tab_text for word in words), words)

    async def see(self, *words: str) -> None:
        """Wait until the screen contains all the texts."""
        assert not self._before_keys or not all(w in self._before_keys for w in words), (
            f"{words} were on the screen before the keys were pressed: wait for what they change"
        )

        def contained() -> bool:
            text = self.text
            return all(word in text for word in words)

        await self._until(contained, words)

    async def wait_for_toast(self, word: str) -> str:
        """Wait for a notification that contains a text, and return it."""
        await self._until(lambda: any(word in toast for toast in self.toasts), word)
        return next(toast for toast in self.toasts if word in toast)

    async def newest_first(self) -> None:
        """Show the newest jobs first, instead of those that need attention."""
        await self.command("group-by none")

    async def rows(self, *keys: str) -> None:
        """Wait until these are the keys of the rows."""
        await self._until(lambda: self.keys == list(keys), keys)

    async def dialog(self, name: str) -> None:
        """Wait for a screen by the name of its class; `MainScreen` without a dialog."""
        await self._until(lambda: type(self.app.screen).__name__ == name, name)
        await self.pilot.pause()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for a condition."""
        await self._until(condition, "the condition")

    async def _until(self, condition: Any, description: object) -> None:
        async def holds() -> bool:
            await self.pilot.pause()
            if self.app._exception is not None:  # the widgets of an app that failed are gone
                raise self.app._exception
            return bool(condition())

        self._before_keys = ""
        try:
            await until(holds, f"{description}")
        except AssertionError as error:
            raise AssertionError(
                f"{error}; notifications: {self.toasts}; on the screen:\n{self.text}"
            ) from None


class PatientGuard(KeyGuard):
    """The keys of a person who waits before each; `pause` is the time in seconds."""

    def __init__(self) -> None:
        super().__init__(lambda: self.time)
        self.time = 0.0
        self.pause = 1.0

    def press(self, key: str) -> None:
        self.time += self.pause
        super().press(key)


@asynccontextmanager
async def open_dashboard(
    rt: Runtime,
    actor: Actor,
    *,
    size: tuple[int, int] = (120, 30),
    read_only: bool = False,
    toasts: bool = False,
    undo: float = 0,
    **start: Any,
) -> AsyncIterator[DashboardPilot]:
    """Open a dashboard, and close it after the block.

    `toasts` draws notifications; without `undo`, answers count at once. `start` has fields of
    LaunchOptions.
    """
    app = Dashboard(connection(rt, actor), LaunchOptions(undo=undo, **start), read_only=read_only)
    app.session.key_guard = PatientGuard()
    app.NOTIFICATION_TIMEOUT = 120  # type: ignore[misc] # a busy machine reads later
    async with app.run_test(size=size, notifications=toasts) as pilot:
        seen = DashboardPilot(pilot, app)
        await seen.until(lambda: app.session.connection.is_connected)
        yield seen


def connection(rt: Runtime, actor: Actor) -> Connect:
    """Return a function that connects a dashboard to open services."""

    async def connect() -> tuple[Runtime, Actor]:
        return rt, actor

    return connect


def connected(rt: Runtime, actor: Actor) -> Connection:
    """Return a connection of a dashboard to open services."""
    result = Connection("PostgreSQL")
    result.connect(rt, actor)
    return result
