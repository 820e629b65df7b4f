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
from draftsman_tui.cli.artifacts import without_changes
from draftsman_tui.cli.output import one_line
from draftsman_tui.dashboard import commands, completion, messages
from draftsman_tui.dashboard import filter as filters
from draftsman_tui.dashboard.completion import Values
from draftsman_tui.dashboard.filter import NOTHING, Filter
from draftsman_tui.dashboard.kept import Kept
from draftsman_tui.dashboard.keys import shown
from draftsman_tui.dashboard.saved import READY, View
from draftsman_tui.dashboard.screens.text import Page
from draftsman_tui.dashboard.verbs import patch
from draftsman_tui.dashboard.views import VIEWS
from draftsman_tui.dashboard.widgets.banner import Banner
from draftsman_tui.dashboard.widgets.command_line import CommandLine, Known, Line
from draftsman_tui.dashboard.widgets.keys import Keys
from draftsman_tui.dashboard.widgets.notice import Notice
from draftsman_tui.dashboard.widgets.overview import Overview
from draftsman_tui.dashboard.widgets.title import Title

if TYPE_CHECKING:
    from draftsman.domain.actor import Actor
    from draftsman.runtime import Runtime
    from draftsman_tui.dashboard.live import Live, Look
    from draftsman_tui.dashboard.screens.dialog import Dialog
    from draftsman_tui.dashboard.started import Started

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
    live: Live
    read_only: bool
    started: Started | None = None
    """What `up` started, where this is its dashboard."""
    keys: Mapping[str, str] = field(default_factory=dict)
    """Keys of commands that are not their own."""
    kept: Kept = field(default_factory=Kept)
    history: dict[str, list[str]] = field(default_factory=dict)
    """What was typed, by `:` and `/`."""

    def views(self) -> dict[str, View]:
        """Return every saved view; those that come along where the file cannot be read."""
        try:
            return self.kept.views()
        except ConfigError:
            return dict(READY)


class Desk(Screen[None]):
    """One place of work. A subclass says what it shows and what its commands are about."""

    BINDINGS: ClassVar[list[BindingType]] = [*commands.bindings()]

    def __init__(self, session: Session) -> None:
        super().__init__()
        if session.keys:
            self._bindings = BindingsMap([*Screen.BINDINGS, *commands.bindings(session.keys)])
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
    def look(self) -> Look | None:
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
            if isinstance(one, Desk):
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
            raise Refused(await without_changes(self.rt, f"D-{number}", number, found is None))
        await self.app.push_screen(Page(f"changes of D-{number}", found, diff=True))

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
        yield Keys()

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
        self.keep_toasts_clear()
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
        takes = {command.name: command.takes for command in commands.COMMANDS}
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

    def keep_toasts_clear(self) -> None:
        """Show what is told in the half of the screen that the cursor is not in."""
        line = self.cursor_line
        self.set_class(line is not None and 2 * line < self.size.height, "toasts-below")

    def say(self, text: str) -> None:
        """Tell what was done."""
        self.notify(one_line(text), markup=False)

    def refuse(self, text: str) -> None:
        """Tell why something was not done."""
        self.notify(one_line(text), severity="error", timeout=10, markup=False)

    @contextmanager
    def said(self, *, typed: bool = False) -> Iterator[None]:
        """Tell what is refused inside, and go on; raises UsageError for what was `typed`."""
        try:
            yield
        except DraftsmanError as error:
            if typed and isinstance(error, UsageError):
                raise
            self.refuse(str(error))

    def _show_keys(self, _: object = None) -> None:
        items = [
            (shown(keys[0]), one.name, self._refusal(one) is None)
            for one in commands.COMMANDS
            if one.is_shown(self.place) and self.is_here(one) and (keys := self.keys_of(one))
        ]
        self.query_one(Keys).show(items)

    def keys_of(self, command: commands.Command) -> Sequence[str]:
        """Return the keys of a command, as they are mapped now, without those taken here."""
        keys = []
        for key, bindings in self._bindings.key_to_bindings.items():
            names = [one.id for one in bindings if one.id in commands.BY_NAME]
            taken = [name for name in names if name and self.is_here(commands.BY_NAME[name])]
            if command.name in names and (not self.is_here(command) or taken[0] == command.name):
                keys.append(key)
        return keys

    def is_here(self, command: commands.Command) -> bool:
        """Return whether this place has a command."""
        return command.on is None or self.place in command.on

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Hide commands of other places; a key of a command that is refused says why."""
        return action != "command" or self.is_here(commands.BY_NAME[str(parameters[0])])

    def action_command(self, name: str) -> None:
        """Do it."""
        self.do(commands.BY_NAME[name])

    def do(self, command: commands.Command, text: str = "") -> None:
        """Run a command beside everything else; what is refused is said."""
        self.run_worker(partial(self._do, command, text), group="commands")  # type: ignore[arg-type]

    def opener(self, key: str) -> commands.Command | None:
        """Return the command of a key that opens a line, unless one is being typed."""
        if isinstance(self.focused, Line):
            return None
        openers = (commands.BY_NAME[name] for name in OPENERS)
        return next(
            (one for one in openers if self.is_here(one) and key in self.keys_of(one)), None
        )

    async def do_now(self, command: commands.Command) -> None:
        """Run a command that waits for nothing before anything else happens."""
        await self._do(command, "")

    async def _do(self, command: commands.Command, text: str, *, typed: bool = False) -> None:
        """Run it; say what is refused. Raises UsageError for what was typed."""
        with self.said(typed=typed):
            if command.on is not None and not self.is_here(command):
                raise Refused(f"{command.name} is for: {', '.join(sorted(command.on))}")
            if refused := self._refusal(command):
                raise Refused(refused)
            await command.run(self, text)
        if command.needs is not None:
            self.again()

    def again(self) -> None:
        """Look again, now: something was done, or somebody wants to know."""
        self.live.ask()

    def _refusal(self, command: commands.Command) -> str | None:
        return commands.refusal(
            command,
            self.rt.policy,
            self.actor,
            self.invoker if self.is_mounted else None,
            read_only=self.read_only,
        )

    @on(messages.Counted)
    def _count(self, counted: messages.Counted) -> None:
        self.query_one(Overview).show(counted.vitals, self.live.now)

    @on(messages.Lost)
    def _lost(self, lost: messages.Lost) -> None:
        self.query_one(Banner).show(lost)

    @on(messages.Back)
    def _back(self) -> None:
        self.query_one(Banner).show(None)
        self.say("Reconnected")

    @on(messages.Refused)
    def _refused(self, refused: messages.Refused) -> None:
        self.refuse(refused.error)
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
                self.look_for(entered.text)
            elif entered.text:
                given = commands.of(entered.text, self.session.views())
                await self._do(*given, typed=True)
        except UsageError as error:
            if self._typed is entered:
                self._typed = None
                self.query_one(CommandLine).refuse(str(error))
            else:
                self.refuse(str(error))
        else:
            if self._typed is entered:
                self.on_screen_suspend()

    @abstractmethod
    def look_for(self, text: str) -> None:
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
