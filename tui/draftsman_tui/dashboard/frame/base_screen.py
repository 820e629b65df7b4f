"""Base screen: overview, banner, command line and execution of commands.

A screen exposes its selection (jobs, a question, deliveries, a web page), so that commands do not
depend on the kind of screen.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingsMap
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets._toast import ToastRack

from draftsman.actions.action import About, Action
from draftsman.actions.changes import no_diff_reason
from draftsman.errors import CommandHint, DraftsmanError, Refused, UsageError
from draftsman.formats.invisible import one_line
from draftsman.ids import job_name
from draftsman.jobs.job import WAITING
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman_tui.common.artifacts import read_patch
from draftsman_tui.common.job_pages import source_of
from draftsman_tui.dashboard.changes.diff_dialog import DiffDialog
from draftsman_tui.dashboard.command import DashboardCommand
from draftsman_tui.dashboard.dialogs.base import Dialog
from draftsman_tui.dashboard.frame import messages
from draftsman_tui.dashboard.frame.hints import hint_text, see_text
from draftsman_tui.dashboard.frame.named_rows import (
    RUNNING_COMMAND,
    NamedRows,
    named_rows,
    split_names,
)
from draftsman_tui.dashboard.frame.refresher import Loader
from draftsman_tui.dashboard.frame.session import Session
from draftsman_tui.dashboard.key_map import display_key
from draftsman_tui.dashboard.tables import completion
from draftsman_tui.dashboard.tables import filter as filters
from draftsman_tui.dashboard.tables.completion import Completer, Completions
from draftsman_tui.dashboard.tables.filter import NOTHING, Filter
from draftsman_tui.dashboard.tables.saved_views import View
from draftsman_tui.dashboard.views import VIEWS
from draftsman_tui.dashboard.widgets.command_line import CommandInput, CommandLine
from draftsman_tui.dashboard.widgets.overview import Overview
from draftsman_tui.dashboard.widgets.screen_lines import Banner, KeyBar, Notice, Title, UndoLine

T = TypeVar("T")
OPENERS: Final = ("command", "filter", "find", "quit")
"""Commands that open the input line or a dialog for which the next key may already be meant."""
STALE: Final = 15.0
"""Seconds after which the overview is marked as stale."""


def _fits(action: Action[Any, ..., Any], state: Any) -> bool:
    """Return whether an action fits a row; one on a question, the job of which it is open."""
    if action.about is About.QUESTION:
        return state.status in WAITING
    return not action.problem(state)


class BaseScreen(Screen[None]):
    """Base class of the screens."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
        self.connection = session.connection
        self.commands = session.commands
        self._bindings = BindingsMap([*Screen.BINDINGS, *self.commands.bindings(session.keys)])
        self.refresher = session.refresher
        self.read_only = session.read_only
        self._typed: CommandLine.Entered | None = None
        """Submitted input that is being processed; its line stays open until it succeeds."""

    @property
    def rt(self) -> Runtime:
        """The services; raises DatabaseUnreachable until they are connected."""
        return self.connection.rt

    @property
    def actor(self) -> Actor:
        """The user; raises DatabaseUnreachable until the services are connected."""
        return self.connection.actor

    @property
    @abstractmethod
    def view_name(self) -> str:
        """Name in `DashboardCommand.on`."""

    @property
    @abstractmethod
    def loader(self) -> Loader | None:
        """Loader of the data shown."""

    @abstractmethod
    def body(self) -> Iterable[Widget]:
        """Return the widgets between the banner and the command line."""

    @property
    @abstractmethod
    def focus_target(self) -> Widget:
        """Widget with the focus while no line is open."""

    @abstractmethod
    def show_table(self, view: str, table_filter: Filter | None = None) -> None:
        """Show a table; None keeps its filter."""

    def show_view(self, view: View, name: str) -> None:
        """Show a saved view."""
        self.show_table(view.table, filters.parse(view.filter))

    @abstractmethod
    def open_job(self, number: int, tab: str = "timeline", key: str | None = None) -> None:
        """Open a tab of a job, with the cursor on an item."""

    @abstractmethod
    def jobs(self, *, optional: bool = False) -> list[int]:
        """Return the distinct selected jobs; raises Refused if there are none."""

    def job(self) -> int:
        """Return the job of the selected row; raises Refused if several rows are selected."""
        self.check_single("job")
        return self.jobs()[0]

    def check_single(self, what: str) -> None:
        """Raise Refused if several rows are selected for a command on one `what`."""

    def chosen(self, what: str) -> Any:
        """Return the row of a table under the cursor, a `what`; raises Refused without one."""
        raise Refused(f"choose a {what} first")

    @property
    def unloaded(self) -> int:
        """Rows of the selected group that are not loaded, and that no command acts on."""
        return 0

    def pin_preview(self, job: int | None) -> None:
        """Show a job in the preview while a dialog asks about it; None: that of the row again."""

    def release_rows(self, jobs: Sequence[int] | None = None) -> None:
        """Keep the cursor in its place when rows leave it: the selected, or those of jobs."""

    def keep_rows(self) -> None:
        """Let the cursor stay on its row again: the command changed none."""

    def keep_marked(self, numbers: Sequence[int]) -> None:
        """Clear the marks of all rows but those of the given jobs."""

    def show_job_row(self, number: int) -> None:
        """Show the jobs table, and move the cursor to the job once it is loaded."""
        self.show_table("jobs", NOTHING)
        for screen in self.app.screen_stack:
            if isinstance(screen, BaseScreen):
                screen.seek_job(number)

    def seek_job(self, number: int) -> None:
        """Move the cursor to a job once it is loaded."""

    @property
    def question(self) -> tuple[int, int] | None:
        """The selected question: job and ordinal."""
        return None

    @property
    def deliveries(self) -> list[int]:
        """The selected deliveries."""
        return []

    @property
    def ids(self) -> list[str]:
        """Ids of the selection."""
        return [job_name(number) for number in self.jobs(optional=True)]

    @property
    def page_url(self) -> str | None:
        """Web page of the selection."""
        return None

    @property
    def invokers(self) -> Sequence[str]:
        """Invokers of the selected jobs, if they are known."""
        return ()

    async def show_diff(self, number: int) -> None:
        """Show the diff of a job; raises Refused if there is none."""
        text = await read_patch(self.rt, number)
        if not text:
            raise Refused(await no_diff_reason(self.rt, job_name(number), number, text is None))
        source = source_of(await self.rt.read_model.job(number))
        await self.app.push_screen(DiffDialog(f"Diff of {job_name(number)}", text, source=source))

    async def after_retry(self, numbers: list[int]) -> None:
        """Handle new jobs created by a retry."""

    def compose(self) -> ComposeResult:
        yield Overview(supervised=self.session.supervised is not None)
        yield Title()
        yield Banner()
        yield Notice()
        yield UndoLine()
        yield from self.body()
        yield CommandLine(self.session.history)
        yield KeyBar()

    def on_mount(self) -> None:
        if not self.connection.is_connected:
            self.query_one(Overview).show_notice(f"Connecting to {self.connection.server} …")
        for notifications in self.query_children(ToastRack):
            self.move_child(notifications, before=self.query_one(CommandLine))
        self.set_interval(1.0, self.tick)
        self.bindings_updated_signal.subscribe(self, self._show_keys)
        self._show_keys()

    def on_screen_resume(self) -> None:
        self.query_one(Banner).show(self.refresher.lost)
        self.tick()
        self.load()

    def load(self) -> None:
        """Load the data shown, once connected."""
        if self.connection.is_connected:
            self.refresher.show(self.loader)

    def show_connected(self) -> None:
        """Show that the services are connected, and load the data."""
        self.query_one(Banner).show(None)
        self.query_one(Overview).show_notice("")
        self.refresh_bindings()
        self.load()

    def tick(self) -> None:
        """Redraw elapsed times."""
        keys = [display_key(key) for key in self.keys_of(self.commands["undo"])]
        self.query_one(UndoLine).show(self.session.undo.text(keys[0] if keys else "u"))
        if self.session.supervised is not None:
            self.query_one(Notice).show(self.session.supervised)
        if self.refresher.last_stats is not None:
            age = time.monotonic() - self.refresher.last_stats.at
            self.query_one(Overview).show(
                self.refresher.last_stats.stats,
                self.refresher.now,
                stale=age if age > STALE else 0,
                waiting=self.refresher.attention.mine if self.refresher.attention else 0,
            )

    def type(self, kind: str, text: str, completer: Completer) -> None:
        """Open the input line for a command (`:`) or a search (`/`)."""
        self._typed = None
        self.query_one(CommandLine).open(kind, text, completer)
        self.query_one(KeyBar).display = False

    @property
    def completions(self) -> Completions:
        """Completion candidates by kind of argument."""
        return {"TABLE": list(VIEWS), "VIEW": list(self.session.views())}

    def complete_command(self, text: str) -> list[str]:
        """Return completions of a command line."""
        views = self.session.views()
        takes = {command.name: command.takes for command in self.commands}
        return completion.commands(text, [*takes, *views], takes, self.completions)

    def complete_filter(self, text: str) -> list[str]:
        """Return completions of a filter."""
        return completion.filters(text, self.completions)

    async def ask(self, dialog: Dialog[T]) -> T | None:
        """Open a dialog and return its result."""
        return await self.app.push_screen_wait(dialog)

    def show_message(self, text: str) -> None:
        """Notify the user of a result."""
        self.notify(one_line(text), markup=False)

    def error_text(self, error: DraftsmanError, *, printed_subject: str = "") -> str:
        """Return the message of an error, with its hint as a key or a line of the dashboard.

        The subject is omitted if it equals `printed_subject`, which the caller prints itself.
        """
        subject = f"{error.subject} " if error.subject and error.subject != printed_subject else ""
        text = f"{subject}{error.reason}"
        if error.hint is None:
            return text
        return f"{text}; {see_text(self, error.hint, error.subject)}"

    def hints_of(self, number: int) -> Callable[[CommandHint], str]:
        """Return how hints about a job are worded here: as keys or lines of the dashboard."""
        return partial(hint_text, self, job=job_name(number))

    def show_error(self, text: str) -> None:
        """Notify the user of an error."""
        self.notify(one_line(text), severity="error", timeout=10, markup=False)

    @contextmanager
    def reporting_errors(self, *, typed: bool = False) -> Iterator[None]:
        """Show errors raised inside; with `typed`, re-raise UsageError."""
        try:
            yield
        except DraftsmanError as error:
            if typed and isinstance(error, UsageError):
                raise
            self.show_error(self.error_text(error))

    def _show_keys(self, _: object = None) -> None:
        keys: dict[str, str] = {}
        for key in self._bindings.key_to_bindings:
            for name in self._names_of(key):
                keys.setdefault(name, key)
        key_hints = [
            (display_key(keys[command.name]), command.name, self.refusal(command) is None)
            for command in self.commands
            if command.name in keys
            and command.is_shown(self.view_name)
            and self.is_here(command)
            and self.is_fitting(command)
        ]
        self.query_one(KeyBar).show(key_hints)

    def keys_of(self, command: DashboardCommand) -> Sequence[str]:
        """Return the current keys of a command, except keys that another command has here."""
        return [
            key
            for key, bindings in self._bindings.key_to_bindings.items()
            if any(binding.id == command.name for binding in bindings)
            and command.name in self._names_of(key)
        ]

    def _names_of(self, key: str) -> Sequence[str]:
        """Return the commands of a key: at most one that applies here, and those that do not."""
        bindings = self._bindings.key_to_bindings.get(key, ())
        names = [name for binding in bindings if (name := binding.id) and name in self.commands]
        here = [name for name in names if self.is_here(self.commands[name])]
        return [name for name in names if name not in here or name == here[0]]

    def is_here(self, command: DashboardCommand) -> bool:
        """Return whether a command applies to this screen."""
        return command.on is None or self.view_name in command.on

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Hide commands of other screens; keys of denied commands stay, to show why."""
        return action != "command" or self.is_here(self.commands[str(parameters[0])])

    def action_command(self, name: str) -> None:
        """Run the command of a key."""
        self.run(self.commands[name])

    def run(self, command: DashboardCommand, text: str = "") -> None:
        """Run a command in the background, and show its errors."""
        self.run_worker(partial(self.run_now, command, text), group="commands")  # type: ignore[arg-type]

    def opening_command(self, key: str) -> DashboardCommand | None:
        """Return the command of a key, if it has to run before the next key, outside the line."""
        if isinstance(self.focused, CommandInput):
            return None
        names = self._names_of(key)
        openers = (self.commands[name] for name in OPENERS if name in names)
        return next((command for command in openers if self.is_here(command)), None)

    async def run_now(
        self, command: DashboardCommand, text: str = "", *, typed: bool = False
    ) -> None:
        """Run a permitted command and show its errors; with `typed`, raise UsageError."""
        with self.leaving_messages(), self.reporting_errors(typed=typed):
            names, text = split_names(command, text)
            if command.on is not None and not names and not self.is_here(command):
                raise Refused(f"{command.name} is available in: {', '.join(sorted(command.on))}")
            if reason := self.refusal(command, named=bool(names)):
                raise Refused(reason)
            command.check_arguments(text)
            screen: Any = self
            if names:
                screen = NamedRows(self, await named_rows(self.rt, command, names))
            RUNNING_COMMAND.set(command.name)
            if command.changes_rows:
                self.release_rows(screen.jobs() if names else None)
            try:
                await command.run(screen, text)
            except DraftsmanError:
                self.keep_rows()
                raise
        if command.needs is not None:
            self.reload()

    def reload(self) -> None:
        """Load now."""
        self.refresher.refresh()

    def refusal(self, command: DashboardCommand, *, named: bool = False) -> str | None:
        """Return why the user may not run a command, or None.

        The service checks the permission for the jobs that are `named`.
        """
        if not self.connection.is_connected:  # the command itself reports it
            return None
        invokers = self.invokers if self.is_mounted and not named else ()
        return command.refusal(self.rt.policy, self.actor, invokers, read_only=self.read_only)

    def is_fitting(self, command: DashboardCommand) -> bool:
        """Return whether a command fits one of the selected rows, as far as they are known."""
        for action in command.actions[:1]:
            states = self.states(action)
            return states is None or any(_fits(action, state) for state in states)
        return True

    def states(self, action: Action[Any, ..., Any]) -> Sequence[Any] | None:
        """Return the selected rows, as the fit of an action takes them; None: not known."""
        return None

    @property
    def position(self) -> object:
        """What is shown: a key that changes it removes earlier messages."""
        return self.view_name

    @property
    def _shown(self) -> tuple[object, object]:
        """The screen below the dialogs, and its position."""
        screens = [screen for screen in self.app.screen_stack if isinstance(screen, BaseScreen)]
        return next(((screen, screen.position) for screen in screens[::-1]), (None, None))

    @contextmanager
    def leaving_messages(self) -> Iterator[None]:
        """Remove the messages from before the block if it changes what is shown."""
        app = self.app
        earlier = list(app._notifications)
        shown = self._shown
        yield
        if self._shown != shown:
            for notification in earlier:
                app._unnotify(notification, refresh=False)
            app._refresh_notifications()

    @on(messages.StatsUpdated)
    def _stats_updated(self) -> None:
        self.tick()

    @on(messages.ConnectionLost)
    def _connection_lost(self, lost: messages.ConnectionLost) -> None:
        self.query_one(Banner).show(lost)

    @on(messages.Reconnected)
    def _reconnected(self) -> None:
        self.query_one(Banner).show(None)
        self.show_message("Reconnected")

    @on(messages.LoadRejected)
    def _load_rejected(self, rejected: messages.LoadRejected) -> None:
        self.show_error(rejected.error)
        self.on_rejected_load()

    def on_rejected_load(self) -> None:
        """Recover from a rejected load."""

    @on(CommandLine.Entered)
    def _entered(self, entered: CommandLine.Entered) -> None:
        if self._typed is None:
            self._typed = entered
            self.run_worker(partial(self._process, entered), group="commands")  # type: ignore[arg-type]

    async def _process(self, entered: CommandLine.Entered) -> None:
        """Process submitted input; on invalid input, the line stays open with the error."""
        try:
            if entered.kind == "/":
                with self.leaving_messages():
                    self.apply_search(entered.text)
            elif entered.text:
                parsed = self.commands.parse(entered.text, self.session.views())
                await self.run_now(*parsed, typed=True)
        except UsageError as error:
            if self._typed is entered:
                self._typed = None
                self.query_one(CommandLine).show_error(self.error_text(error))
            else:
                self.show_error(self.error_text(error))
        else:
            if self._typed is entered:
                self._close_line()

    @abstractmethod
    def apply_search(self, text: str) -> None:
        """Apply the text of the `/` line; raises UsageError."""

    def on_screen_suspend(self) -> None:
        self._close_line()

    def _close_line(self) -> None:
        """Close the line of valid input."""
        if self._typed is not None:
            self._typed = None
            self.query_one(CommandLine).close()

    @on(CommandLine.Left)
    def _show_key_bar(self) -> None:
        self.query_one(KeyBar).display = True
        self.focus_target.focus()
