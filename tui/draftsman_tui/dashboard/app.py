"""The application: themes, the palette, one screen with everything else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from textual import events
from textual.app import App, SystemCommand
from textual.filter import LineFilter, NoColor
from textual.message import Message
from textual.notifications import Notify
from textual.screen import Screen
from textual.theme import Theme

from draftsman_tui.common.output import one_line
from draftsman_tui.dashboard.command_table import BY_NAME, COMMANDS
from draftsman_tui.dashboard.dialogs.quit_dialog import QuitDialog
from draftsman_tui.dashboard.launch_options import LaunchOptions
from draftsman_tui.dashboard.polling.refresher import Refresher
from draftsman_tui.dashboard.screens.base import BaseScreen, Session
from draftsman_tui.dashboard.screens.main import MainScreen
from draftsman_tui.dashboard.themes import THEMES

if TYPE_CHECKING:
    from draftsman.domain.people.actor import Actor
    from draftsman.runtime import Runtime
    from draftsman_tui.dashboard.supervised import SupervisedProcesses


class Dashboard(App[str]):
    """Lives as long as somebody looks.

    The dashboard of `up` knows what was `started`, and returns what is to become of it: `stop`,
    `leave`, or None where nobody said.
    """

    TITLE = "draftsman"
    CSS_PATH = "dashboard.tcss"
    ENABLE_COMMAND_PALETTE = True

    def __init__(
        self,
        rt: Runtime,
        actor: Actor,
        start: LaunchOptions | None = None,
        *,
        read_only: bool = False,
        started: SupervisedProcesses | None = None,
    ) -> None:
        super().__init__()
        start = start or LaunchOptions()
        for one in THEMES:
            self.register_theme(Theme(**one))
        self.theme = start.theme
        self.set_keymap({name: keys for name, keys in start.keys.items() if name not in BY_NAME})
        self.live = Refresher(rt, self._tell)
        self.session = Session(rt, actor, self.live, read_only, started, start.keys)
        self.main = MainScreen(self.session, start.view)

    def on_mount(self) -> None:
        """Show the tables, and begin to look."""
        self.push_screen(self.main)
        self.run_worker(self.live.run(), group="live")
        for problem in self.session.kept.problems():
            self.notify(one_line(problem), severity="warning", timeout=20, markup=False)

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Leave no colour over where none is wanted."""
        found = super().get_line_filters()
        return [*found, NoColor()] if self.theme == "none" else found

    def on_notify(self, told: Notify) -> None:
        """Let it stand in place of the same that was told before and is still there."""
        new = told.notification
        for one in list(self._notifications):
            if (one.message, one.severity) == (new.message, new.severity):
                self._unnotify(one, refresh=False)
        if isinstance(self.screen, BaseScreen):
            self.screen.position_toasts()

    async def on_event(self, event: events.Event) -> None:
        """Open a line before the next key is dealt out: a slow network brings several at once."""
        if isinstance(event, events.Key) and not event.is_forwarded:
            desk = self.screen
            if isinstance(desk, BaseScreen) and (command := desk.opener(event.key)):
                await desk.do_now(command)
                return
        await super().on_event(event)

    def leave(self) -> None:
        """Leave, as the command does: what was started may have to be asked about."""
        if not isinstance(self.screen, QuitDialog):
            self.main.do(BY_NAME["quit"])

    async def action_quit(self) -> None:
        """Leave, wherever Ctrl-Q is pressed."""
        self.leave()

    def action_help_quit(self) -> None:
        """Leave, wherever Ctrl-C is pressed and nothing is there to be copied."""
        self.leave()

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """Offer in the palette every command of the desk in view."""
        if isinstance(screen, BaseScreen):
            for command in COMMANDS:
                if screen.is_here(command):
                    yield SystemCommand(command.name, command.help, partial(screen.do, command))

    def _tell(self, message: Message) -> None:
        """Hand a message of the live source to the desk in view, behind whatever dialog."""
        desk = next(
            (one for one in reversed(self.screen_stack) if isinstance(one, BaseScreen)), None
        )
        if desk is not None:
            desk.post_message(message)
