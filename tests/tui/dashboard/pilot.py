"""A dashboard without a terminal: what is pressed, and what is seen."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from textual import events
from textual.pilot import Pilot
from textual.widgets import Static

from draftsman.domain.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman_tui.dashboard.app import Dashboard
from draftsman_tui.dashboard.launch_options import LaunchOptions
from draftsman_tui.dashboard.screens.job import JobScreen
from tests.support.waits import until

if TYPE_CHECKING:
    from draftsman_tui.dashboard.screens.session import Connect


class DashboardPilot:
    """One dashboard, its keys and its screen."""

    def __init__(self, pilot: Pilot[Any], app: Dashboard) -> None:
        self.pilot = pilot
        self.app = app

    @property
    def lines(self) -> list[str]:
        """The screen as text."""
        strips = self.app.screen._compositor.render_strips()
        return [strip.text.rstrip() for strip in strips]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def said(self) -> list[str]:
        """What it told, the newest last, and what is wrong with the line."""
        wrong = self.app.screen.query("CommandLine.open .hint.wrong").results(Static)
        return [one.message for one in self.app._notifications] + [
            str(one.content) for one in wrong
        ]

    @property
    def keys(self) -> list[str]:
        """The keys of the rows, in the order shown."""
        return list(self.app.main.table.keys)

    @property
    def here(self) -> str | None:
        """The key of the row under the cursor."""
        table = self.app.main.table
        return table.keys[table.cursor] if table.keys else None

    @property
    def part(self) -> str:
        """All that the part of the job in view has, whether it fits the screen or not."""
        screen = self.app.screen
        assert isinstance(screen, JobScreen)
        return screen.item_list.text

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)

    async def type(self, text: str) -> None:
        """Type into the line or dialog that is open."""
        names = {" ": "space", ":": "colon", "/": "slash", ",": "comma", "-": "minus"}
        await self.press(*(names.get(one, one) for one in text))

    async def paste(self, text: str) -> None:
        """Let the terminal paste where the cursor is."""
        self.app.post_message(events.Paste(text))
        await self.pilot.pause()

    async def command(self, line: str) -> None:
        """Type a command and hand it in, in place of one that is to be mended."""
        if self.app.screen.query("CommandLine.open"):
            await self.press("escape")
        await self.press("colon")
        await self.paste(line)
        await self.press("enter")

    async def job(self, named: str, key: str = "") -> None:
        """Open a job by its name, and a part by its key; wait until it was looked at."""
        await self.command(f"job {named}")
        await self.dialog("JobScreen")
        await self._until(lambda: getattr(self.app.screen, "snapshot", None), named)
        if key:
            await self.press(key)

    async def read(self, *words: str) -> None:
        """Wait until all of it is in the part of the job in view."""
        await self._until(lambda: all(word in self.part for word in words), words)

    async def see(self, *words: str) -> None:
        """Wait until all of it is on the screen."""
        await self._until(lambda: all(word in self.text for word in words), words)

    async def wait_for_toast(self, word: str) -> str:
        """Wait until something is told; return it."""
        await self._until(lambda: any(word in one for one in self.said), word)
        return next(one for one in self.said if word in one)

    async def rows(self, *keys: str) -> None:
        """Wait until these are the rows."""
        await self._until(lambda: self.keys == list(keys), keys)

    async def dialog(self, name: str) -> None:
        """Wait until a dialog is open, `MainScreen` for none."""
        await self._until(lambda: type(self.app.screen).__name__ == name, name)
        await self.pilot.pause()

    async def until(self, look: Callable[[], bool]) -> None:
        """Wait for something else."""
        await self._until(look, "what was waited for")

    async def _until(self, look: Any, what: object) -> None:
        async def looked() -> bool:
            await self.pilot.pause()
            return bool(look())

        try:
            await until(looked, f"{what}")
        except AssertionError as error:
            raise AssertionError(
                f"{error}; said {self.said}; on the screen:\n{self.text}"
            ) from None


@asynccontextmanager
async def open_dashboard(
    rt: Runtime,
    actor: Actor,
    *,
    size: tuple[int, int] = (120, 30),
    read_only: bool = False,
    toasts: bool = False,
    **start: Any,
) -> AsyncIterator[DashboardPilot]:
    """Open a dashboard and leave it; `start` is what it begins with.

    `toasts`: draw what it tells.
    """
    app = Dashboard(connection(rt, actor), LaunchOptions(**start), read_only=read_only)
    async with app.run_test(size=size, notifications=toasts) as pilot:
        seen = DashboardPilot(pilot, app)
        await seen.until(lambda: app.session.is_connected)
        yield seen


def connection(rt: Runtime, actor: Actor) -> Connect:
    """Return a function that connects a dashboard to open services."""

    async def connect() -> tuple[Runtime, Actor]:
        return rt, actor

    return connect
