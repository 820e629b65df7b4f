"""What every place of work shares: the strip, the banner, the `:` line, and doing commands.

A desk says what its commands are about (jobs, a question, deliveries, a page in the browser); the
commands do not know which desk they are given at.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingsMap, BindingType
from textual.screen import Screen
from textual.widget import Widget

from draftsman.errors import ConfigError, DraftsmanError, Refused, UsageError
from draftsman_tui.common.artifact_text import no_diff_reason
from draftsman_tui.common.output import one_line
from draftsman_tui.dashboard import command_table, completion
from draftsman_tui.dashboard import filter as filters
from draftsman_tui.dashboard.actions.job_actions import patch
from draftsman_tui.dashboard.completion import Values
from draftsman_tui.dashboard.dialogs.text_dialog import TextDialog
from draftsman_tui.dashboard.filter import NOTHING, Filter
from draftsman_tui.dashboard.key_map import display_key
from draftsman_tui.dashboard.polling import messages
from draftsman_tui.dashboard.preferences import Preferences
from draftsman_tui.dashboard.saved_views import BUILTIN_VIEWS, View
from draftsman_tui.dashboard.views import VIEWS
from draftsman_tui.dashboard.widgets.banner import Banner
from draftsman_tui.dashboard.widgets.command_line import CommandInput, CommandLine, Known
from draftsman_tui.dashboard.widgets.key_bar import KeyBar
from draftsman_tui.dashboard.widgets.notice import Notice
from draftsman_tui.dashboard.widgets.overview import Overview
from draftsman_tui.dashboard.widgets.title import Title

if TYPE_CHECKING:
    from draftsman.domain.people.actor import Actor
    from draftsman.runtime import Runtime
    from draftsman_tui.dashboard.dialogs.base import Dialog
    from draftsman_tui.dashboard.polling.refresher import Loader, Refresher
    from draftsman_tui.dashboard.supervised import SupervisedProcesses

T = TypeVar("T")
OPENERS: Final = ("command", "filter", "find")
"""Commands that let a line be typed."""
STALE: Final = 15.0
"""Seconds after which numbers are called old."""


@dataclass(frozen=True, slots=True)
class Session:
    """Who looks, at what, and whether that is all they do."""

    rt: Runtime
    actor: Actor
    live: Refresher
    read_only: bool
    started: SupervisedProcesses | None = None
    """What `up` started, where this is its dashboard."""
    keys: Mapping[str, str] = field(default_factory=dict)
    """Keys of commands that are not their own."""
    kept: Preferences = field(default_factory=Preferences)
    history: dict[str, list[str]] = field(default_factory=dict)
    """What was typed, by `:` and `/`."""

    def views(self) -> dict[str, View]:
        """Return every saved view; those that come along where the file cannot be read."""
        try:
            return self.kept.views()
        except ConfigError:
            return dict(BUILTIN_VIEWS)


class BaseScreen(Screen[None]):
    """One place of work. A subclass says what it shows and what its commands are about."""

    BINDINGS: ClassVar[list[BindingType]] = [*command_table.bindings()]

    def __init__(self, session: Session) -> None:
        super().__init__()
        if session.keys:
            self._bindings = BindingsMap([*Screen.BINDINGS, *command_table.bindings(session.keys)])
        self.session = session
        self.rt = session.rt
        self.actor = session.actor
        self.live = session.live
        self.read_only = session.read_only
        self._typed: CommandLine.Entered | None = None
        """What was typed and is being done; the line stays open until then."""

    @property
    @abstractmethod
    def place(self) -> str:
        """What `Command.on` calls it."""

    @property
    @abstractmethod
    def look(self) -> Loader | None:
        """What the live source looks at while this is on top."""

    @abstractmethod
    def body(self) -> Iterable[Widget]:
        """Return what is between the banner and the `:` line."""

    @property
    @abstractmethod
    def home(self) -> Widget:
        """What takes the keys when no line is typed."""

    @abstractmethod
    def go(self, view: str, wanted: Filter | None = None) -> None:
        """Show a table."""

    def show_view(self, view: View, name: str) -> None:
        """Show a saved view."""
        self.go(view.table, filters.parse(view.filter))

    @abstractmethod
    def open_job(self, number: int, part: str = "timeline", key: str | None = None) -> None:
        """Show a job: a part of it, with the cursor on an item."""

    @abstractmethod
    async def open_row(self) -> None:
        """Open what the cursor is on."""

    @abstractmethod
    def jobs(self, *, optional: bool = False) -> list[int]:
        """Return the chosen jobs, each once; raises Refused where there is none."""

    def keep(self, numbers: Sequence[int]) -> None:
        """Leave marked only what is about these jobs."""

    def find(self, number: int) -> None:
        """Show a job in the table of jobs, with the cursor on it as soon as it is there."""
        self.go("jobs", NOTHING)
        for one in self.app.screen_stack:
            if isinstance(one, BaseScreen):
                one.seek(number)

    def seek(self, number: int) -> None:
        """Let the cursor go to a job as soon as it is there."""

    @property
    def question(self) -> tuple[int, int] | None:
        """The question that is chosen: job and ordinal."""
        return None

    @property
    def deliveries(self) -> list[int]:
        """The chosen deliveries."""
        return []

    @property
    def ids(self) -> list[str]:
        """What is copied."""
        return [f"D-{number}" for number in self.jobs(optional=True)]

    @property
    def address(self) -> str | None:
        """The page in a browser of what is chosen."""
        return None

    @property
    def invoker(self) -> str | None:
        """Who asked for what is chosen, where that is known."""
        return None

    async def changes(self, number: int) -> None:
        """Show what a job changed; raises Refused where it changed nothing."""
        found = await patch(self.rt, number)
        if not found:
            raise Refused(await no_diff_reason(self.rt, f"D-{number}", number, found is None))
        await self.app.push_screen(TextDialog(f"changes of D-{number}", found, diff=True))

    async def retried(self, numbers: list[int]) -> None:
        """Go on after jobs were retried; these are the new ones."""

    def compose(self) -> ComposeResult:
        """Lay it out."""
        yield Overview()
        yield Title()
        yield Banner()
        yield Notice()
        yield from self.body()
        yield CommandLine(self.session.history)
        yield KeyBar()

    def on_mount(self) -> None:
        """Begin to count seconds."""
        self.set_interval(1.0, self.tick)
        self.bindings_updated_signal.subscribe(self, self._show_keys)
        self._show_keys()

    def on_screen_resume(self) -> None:
        """Look at what is shown here."""
        self.query_one(Banner).show(self.live.lost)
        self.tick()
        self.live.show(self.look)

    def tick(self) -> None:
        """Draw anew what tells the time."""
        self.position_toasts()
        if self.session.started is not None:
            self.query_one(Notice).show(self.session.started)
        if self.live.counted is not None:
            old = time.monotonic() - self.live.counted.at
            stale = old if old > STALE else 0
            self.query_one(Overview).show(self.live.counted.vitals, self.live.now, stale)

    def type(self, kind: str, text: str, known: Known) -> None:
        """Let a line be typed; `known` is what completes it."""
        self._typed = None
        self.query_one(CommandLine).open(kind, text, known)
        self.add_class("typing")

    @property
    def values(self) -> Values:
        """What completes what a command takes, by what it is."""
        return {"TABLE": list(VIEWS), "VIEW": list(self.session.views())}

    def lines_known(self, text: str) -> list[str]:
        """Return what a `:` line may become."""
        views = self.session.views()
        takes = {command.name: command.takes for command in command_table.COMMANDS}
        return completion.commands(text, [*takes, *views], takes, self.values)

    def filters_known(self, text: str) -> list[str]:
        """Return what a filter may become."""
        return completion.filters(text, self.values)

    async def ask(self, dialog: Dialog[T]) -> T | None:
        """Return what a dialog returns."""
        return await self.app.push_screen_wait(dialog)

    @property
    def cursor_line(self) -> int | None:
        """The line of the screen that the cursor is on; None: there is none."""
        return None

    def position_toasts(self) -> None:
        """Show what is told in the half of the screen that the cursor is not in."""
        line = self.cursor_line
        self.set_class(line is not None and 2 * line < self.size.height, "toasts-below")

    def show_message(self, text: str) -> None:
        """Tell what was done."""
        self.notify(one_line(text), markup=False)

    def show_error(self, text: str) -> None:
        """Tell why something was not done."""
        self.notify(one_line(text), severity="error", timeout=10, markup=False)

    @contextmanager
    def reporting_errors(self, *, typed: bool = False) -> Iterator[None]:
        """Tell what is refused inside, and go on; raises UsageError for what was `typed`."""
        try:
            yield
        except DraftsmanError as error:
            if typed and isinstance(error, UsageError):
                raise
            self.show_error(str(error))

    def _show_keys(self, _: object = None) -> None:
        items = [
            (display_key(keys[0]), one.name, self._refusal(one) is None)
            for one in command_table.COMMANDS
            if one.is_shown(self.place) and self.is_here(one) and (keys := self.keys_of(one))
        ]
        self.query_one(KeyBar).show(items)

    def keys_of(self, command: command_table.DashboardCommand) -> Sequence[str]:
        """Return the keys of a command, as they are mapped now, without those taken here."""
        keys = []
        for key, bindings in self._bindings.key_to_bindings.items():
            names = [one.id for one in bindings if one.id in command_table.BY_NAME]
            taken = [name for name in names if name and self.is_here(command_table.BY_NAME[name])]
            if command.name in names and (not self.is_here(command) or taken[0] == command.name):
                keys.append(key)
        return keys

    def is_here(self, command: command_table.DashboardCommand) -> bool:
        """Return whether this place has a command."""
        return command.on is None or self.place in command.on

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Hide commands of other places; a key of a command that is refused says why."""
        return action != "command" or self.is_here(command_table.BY_NAME[str(parameters[0])])

    def action_command(self, name: str) -> None:
        """Do it."""
        self.do(command_table.BY_NAME[name])

    def do(self, command: command_table.DashboardCommand, text: str = "") -> None:
        """Run a command beside everything else; what is refused is said."""
        self.run_worker(partial(self._do, command, text), group="commands")  # type: ignore[arg-type]

    def opener(self, key: str) -> command_table.DashboardCommand | None:
        """Return the command of a key that opens a line, unless one is being typed."""
        if isinstance(self.focused, CommandInput):
            return None
        openers = (command_table.BY_NAME[name] for name in OPENERS)
        return next(
            (one for one in openers if self.is_here(one) and key in self.keys_of(one)), None
        )

    async def do_now(self, command: command_table.DashboardCommand) -> None:
        """Run a command that waits for nothing before anything else happens."""
        await self._do(command, "")

    async def _do(
        self, command: command_table.DashboardCommand, text: str, *, typed: bool = False
    ) -> None:
        """Run it; say what is refused. Raises UsageError for what was typed."""
        with self.reporting_errors(typed=typed):
            if command.on is not None and not self.is_here(command):
                raise Refused(f"{command.name} is for: {', '.join(sorted(command.on))}")
            if refused := self._refusal(command):
                raise Refused(refused)
            await command.run(self, text)
        if command.needs is not None:
            self.reload()

    def reload(self) -> None:
        """Look again, now: something was done, or somebody wants to know."""
        self.live.ask()

    def _refusal(self, command: command_table.DashboardCommand) -> str | None:
        return command_table.refusal(
            command,
            self.rt.policy,
            self.actor,
            self.invoker if self.is_mounted else None,
            read_only=self.read_only,
        )

    @on(messages.StatsUpdated)
    def _count(self, counted: messages.StatsUpdated) -> None:
        self.query_one(Overview).show(counted.vitals, self.live.now)

    @on(messages.ConnectionLost)
    def _lost(self, lost: messages.ConnectionLost) -> None:
        self.query_one(Banner).show(lost)

    @on(messages.Reconnected)
    def _back(self) -> None:
        self.query_one(Banner).show(None)
        self.show_message("Reconnected")

    @on(messages.LoadRejected)
    def _refused(self, refused: messages.LoadRejected) -> None:
        self.show_error(refused.error)
        self.refused()

    def refused(self) -> None:
        """Go on after a look that could not be."""

    @on(CommandLine.Entered)
    def _entered(self, entered: CommandLine.Entered) -> None:
        if self._typed is None:
            self._typed = entered
            self.run_worker(partial(self._do_typed, entered), group="commands")  # type: ignore[arg-type]

    async def _do_typed(self, entered: CommandLine.Entered) -> None:
        """Do what was typed; where it cannot be meant, the line stays to be mended."""
        try:
            if entered.kind == "/":
                self.apply_search(entered.text)
            elif entered.text:
                given = command_table.parse_command(entered.text, self.session.views())
                await self._do(*given, typed=True)
        except UsageError as error:
            if self._typed is entered:
                self._typed = None
                self.query_one(CommandLine).show_error(str(error))
            else:
                self.show_error(str(error))
        else:
            if self._typed is entered:
                self.on_screen_suspend()

    @abstractmethod
    def apply_search(self, text: str) -> None:
        """Show only what was typed behind `/`; raises UsageError, and the line stays."""

    def on_screen_suspend(self) -> None:
        """Close the line of what is done, or asks: it could be meant."""
        if self._typed is not None:
            self._typed = None
            self.query_one(CommandLine).close()

    @on(CommandLine.Left)
    def _left(self) -> None:
        self.remove_class("typing")
        self.home.focus()
