"""Dashboard application: themes, command palette and screens."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from textual import events
from textual.app import App
from textual.command import Provider
from textual.filter import LineFilter, NoColor
from textual.message import Message
from textual.notifications import Notify
from textual.screen import Screen
from textual.theme import Theme
from textual.worker import Worker, WorkerError

from draftsman.formats.invisible import one_line
from draftsman_tui.dashboard.attention.alerts import TerminalAlerts
from draftsman_tui.dashboard.attention.attention import AttentionPoller
from draftsman_tui.dashboard.command import CommandSet
from draftsman_tui.dashboard.command_table import COMMANDS
from draftsman_tui.dashboard.frame.base_screen import BaseScreen
from draftsman_tui.dashboard.frame.connection import Connect, Connection
from draftsman_tui.dashboard.frame.dialogs import HelpDialog
from draftsman_tui.dashboard.frame.messages import AttentionUpdated
from draftsman_tui.dashboard.frame.palette import CommandProvider
from draftsman_tui.dashboard.frame.refresher import Refresher
from draftsman_tui.dashboard.frame.session import Session
from draftsman_tui.dashboard.launch_options import LaunchOptions
from draftsman_tui.dashboard.questions.question_dialog import QuestionDialog
from draftsman_tui.dashboard.questions.undo_window import UndoWindow
from draftsman_tui.dashboard.tables.screen import MainScreen
from draftsman_tui.dashboard.themes import THEMES
from draftsman_tui.dashboard.worker.supervised import SupervisedProcesses


class Dashboard(App[str]):
    """The Textual application.

    `connect` is called once the screen is drawn, and again while the database is unreachable;
    `server` names the database until then. With `started` processes, the application returns `stop`
    or `leave` for them, or None without a choice.
    """

    TITLE = "draftsman"
    CSS_PATH = "dashboard.tcss"
    ENABLE_COMMAND_PALETTE = True
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {CommandProvider}
    SUSPENDED_SCREEN_CLASS = "suspended"

    def __init__(
        self,
        connect: Connect,
        options: LaunchOptions | None = None,
        *,
        server: str = "PostgreSQL",
        read_only: bool = False,
        started: SupervisedProcesses | None = None,
    ) -> None:
        super().__init__()
        options = options or LaunchOptions()
        for palette in THEMES:
            self.register_theme(Theme(**palette))
        self.theme = options.theme
        commands = CommandSet((*COMMANDS, *options.own))
        self.set_keymap({name: keys for name, keys in options.keys.items() if name not in commands})
        connection = Connection(server)
        self.refresher = Refresher(connection, self._forward, AttentionPoller(connection))
        self._alerts = TerminalAlerts(self._write_sequence, options.alerts)
        self.session = Session(
            connection=connection,
            refresher=self.refresher,
            undo=UndoWindow(
                options.undo,
                connection,
                self.refresher.clock,
                report=self._report,
                changed=self._show_undo,
            ),
            commands=commands,
            read_only=read_only,
            supervised=started,
            keys=options.keys,
        )
        self.main = MainScreen(self.session, options.view)
        self._connect = connect
        self._polling: Worker[None] | None = None
        self._error: Exception | None = None

    async def run_async(self, **options: Any) -> str | None:
        """Run until the user quits; raises why no connection is possible."""
        try:
            result = await super().run_async(**options)
        finally:
            if self._polling is not None:
                with contextlib.suppress(WorkerError):  # the screen has shown it
                    await self._polling.wait()
        if self._error is not None:
            raise self._error
        return result

    async def on_unmount(self) -> None:
        """Restore the title of the terminal, and apply the decisions that can be undone."""
        self._alerts.close()
        await self.session.undo.finish()

    async def on_mount(self) -> None:
        await self.push_screen(self.main)
        self.main.call_after_refresh(self._start_polling)
        for problem in self.session.preferences.problems():
            self.notify(one_line(problem), severity="warning", timeout=20, markup=False)

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Remove all colors in the theme `none`."""
        filters = super().get_line_filters()
        return [*filters, NoColor()] if self.theme == "none" else filters

    def on_notify(self, event: Notify) -> None:
        """Replace an equal notification that is still shown; a closing dashboard shows none."""
        if not self.is_running:
            return
        new = event.notification
        for old in list(self._notifications):
            if (old.message, old.severity) == (new.message, new.severity):
                self._unnotify(old, refresh=False)

    async def on_event(self, event: events.Event) -> None:
        """Open a line or the quit dialog before the next key: several may arrive at once."""
        if isinstance(event, events.Key | events.MouseDown) and not event.is_forwarded:
            key = event.key if isinstance(event, events.Key) else "mouse"
            self.session.key_guard.press(key)
        if isinstance(event, events.Key) and not event.is_forwarded:
            screen = await self._screen_of_command(event.key)
            command = screen.opening_command(event.key) if isinstance(screen, BaseScreen) else None
            if self.session.is_reviewing and isinstance(screen, BaseScreen):
                self.session.is_reviewing = event.key != "escape"
                if command is None or command.name != "quit":
                    return
            if command is not None and isinstance(screen, BaseScreen):
                await screen.run_now(command)
                return
        await super().on_event(event)

    async def _screen_of_command(self, key: str) -> Screen[object]:
        """Return the current screen, which the key of a command line changes from the help."""
        screen = self.screen
        if isinstance(screen, HelpDialog) and not screen.is_searching:
            below = screen.below
            command = below.opening_command(key) if isinstance(below, BaseScreen) else None
            if command is not None and command.name == "command":
                await screen.dismiss(None)
                return below
        return screen

    def request_quit(self) -> None:
        """Run the quit command before the next key."""
        self.call_next(self.main.run_now, COMMANDS["quit"])

    def action_command_palette(self) -> None:
        """Open the palette over a screen with commands or its help, not over another dialog."""
        if isinstance(self.screen, BaseScreen | HelpDialog):
            super().action_command_palette()

    async def action_quit(self) -> None:
        """Handle Ctrl-Q."""
        self.request_quit()

    def action_help_quit(self) -> None:
        """Handle Ctrl-C without a selection."""
        self.request_quit()

    def _start_polling(self) -> None:
        self._polling = self.run_worker(self._poll(), group="refresher")

    async def _poll(self) -> None:
        """Connect, and poll until canceled; quit if no connection is possible."""
        try:
            rt, actor = await self.refresher.connect(self._connect)
        except Exception as error:
            self._error = error
            self.exit()
            return
        self.session.connection.connect(rt, actor)
        for screen in self.screen_stack:
            if isinstance(screen, BaseScreen) and screen.is_attached:
                screen.show_connected()
        await self.refresher.run()

    def _report(self, text: str, is_error: bool) -> None:
        """Show the effect of a decision whose undo window has ended.

        A success is not shown over the next question of a review, which it would cover.
        """
        if (screen := self._base_screen) is not None and self.is_running:
            if is_error:
                screen.show_error(text)
            elif not self.session.is_reviewing:
                screen.show_message(text)
            screen.reload()

    def _show_undo(self) -> None:
        """Show the decisions that can be undone, on the screen and in its dialog."""
        for screen in self.screen_stack if self.is_running else ():
            if isinstance(screen, BaseScreen | QuestionDialog) and screen.is_mounted:
                screen.tick()

    def _write_sequence(self, sequence: str) -> None:
        if self._driver is not None:
            self._driver.write(sequence)
            self._driver.flush()

    def _forward(self, message: Message) -> None:
        """Post a refresher message to the top screen below any dialog."""
        if isinstance(message, AttentionUpdated):
            self._alerts.show(message.attention)
        if (screen := self._base_screen) is not None:
            screen.post_message(message)

    @property
    def _base_screen(self) -> BaseScreen | None:
        """The top screen below any dialog."""
        screens = (
            screen for screen in reversed(self.screen_stack) if isinstance(screen, BaseScreen)
        )
        return next(screens, None)
