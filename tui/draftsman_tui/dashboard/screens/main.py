"""The screen with the table: takes messages from the live source, keys and lines from people."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import Screen
from textual.widgets import Footer

from draftsman.domain.actor import Actor
from draftsman.errors import DraftsmanError, Refused
from draftsman_tui.cli.output import one_line
from draftsman_tui.dashboard import commands, messages
from draftsman_tui.dashboard import filter as filters
from draftsman_tui.dashboard.live import Live
from draftsman_tui.dashboard.resource import MOST, PAGE, Query, Resource, Rows
from draftsman_tui.dashboard.screens.dialog import Dialog
from draftsman_tui.dashboard.views import VIEWS
from draftsman_tui.dashboard.widgets.banner import Banner
from draftsman_tui.dashboard.widgets.command_line import CommandLine
from draftsman_tui.dashboard.widgets.overview import Overview
from draftsman_tui.dashboard.widgets.table import ResourceTable
from draftsman_tui.dashboard.widgets.title import Title

if TYPE_CHECKING:
    from draftsman.runtime import Runtime

T = TypeVar("T")
STALE: Final = 15.0
"""Seconds after which numbers are called old."""


@dataclass(frozen=True, slots=True)
class State:
    """How a table was left: what it shows, in which order, from where on."""

    filter: filters.Filter = filters.NOTHING
    sort: str | None = None
    down: bool = False
    limit: int = PAGE
    starts: tuple[Any, ...] = ()
    """Where the pages before this one began, and this one last."""
    rows: Rows[Any] | None = None


class MainScreen(Screen[None]):
    """One table at a time, an overview above it, keys below."""

    BINDINGS: ClassVar[list[BindingType]] = [*commands.bindings()]

    def __init__(self, rt: Runtime, actor: Actor, *, read_only: bool, view: str) -> None:
        super().__init__()
        self.rt = rt
        self.actor = actor
        self.read_only = read_only
        self.live = Live(rt, self.post_message)
        self._view = view
        self._states = dict.fromkeys(VIEWS, State())
        self._counted_at = time.monotonic()

    @property
    def resource(self) -> Resource[Any]:
        """What is shown."""
        return VIEWS[self._view]

    @property
    def state(self) -> State:
        """How it is shown."""
        return self._states[self._view]

    @property
    def table(self) -> ResourceTable:
        """The table."""
        return self.query_one(ResourceTable)

    def compose(self) -> ComposeResult:
        """Lay it out."""
        yield Overview()
        yield Title()
        yield Banner()
        yield ResourceTable()
        yield CommandLine()
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """Begin to look."""
        self.run_worker(self.live.run(), group="live")
        self.set_interval(1.0, self._tick)
        self.table.focus()
        self._show()

    def go(self, view: str, wanted: filters.Filter | None = None) -> None:
        """Show another table."""
        self._view = view
        self.table.unmark()
        if wanted is None:
            self._show()
        else:
            self.narrow(wanted)

    def narrow(self, wanted: filters.Filter) -> None:
        """Show only some rows."""
        self._change(filter=wanted, limit=PAGE, starts=(), rows=None)

    def sort(self, head: str | None, *, turn: bool = False) -> None:
        """Sort by a column, or by none."""
        self._change(sort=head, down=self.state.down ^ turn)

    def type(self, kind: str, text: str) -> None:
        """Let a line be typed."""
        known = commands.lines() if kind == ":" else [f"{name}:" for name in filters.FIELDS]
        self.query_one(CommandLine).open(kind, text, known)

    def jobs(self, *, optional: bool = False) -> list[int]:
        """Return the jobs of the chosen rows, each once; raises Refused where there is none."""
        found = (self.resource.job(row) for row in self.table.chosen)
        numbers = list(dict.fromkeys(number for number in found if number is not None))
        if not numbers and not optional:
            raise Refused("choose a row that is about a job first")
        return numbers

    async def ask(self, dialog: Dialog[T]) -> T | None:
        """Return what a dialog returns."""
        return await self.app.push_screen_wait(dialog)

    def say(self, text: str) -> None:
        """Tell what was done."""
        self.notify(one_line(text), markup=False)

    def refuse(self, text: str) -> None:
        """Tell why something was not done."""
        self.notify(one_line(text), severity="error", timeout=10, markup=False)

    @contextmanager
    def said(self) -> Iterator[None]:
        """Tell what is refused inside, and go on."""
        try:
            yield
        except DraftsmanError as error:
            self.refuse(str(error))

    def keys_of(self, command: commands.Command) -> Sequence[str]:
        """Return the keys of a command, as they are mapped now."""
        return [
            key
            for key, bindings in self._bindings.key_to_bindings.items()
            if any(one.id == command.name for one in bindings)
        ]

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Hide commands of other tables; grey what this person may not do."""
        if action != "command":
            return True
        command = commands.BY_NAME[str(parameters[0])]
        if command.on is not None and self._view not in command.on:
            return False
        return None if self._refusal(command) else True

    def action_command(self, name: str) -> None:
        """Do it."""
        self.do(commands.BY_NAME[name])

    def do(self, command: commands.Command, text: str = "") -> None:
        """Run a command beside everything else; what is refused is said."""
        self.run_worker(self._do(command, text), group="commands")

    async def _do(self, command: commands.Command, text: str) -> None:
        with self.said():
            if command.on is not None and self._view not in command.on:
                raise Refused(f"{command.name} is for: {', '.join(sorted(command.on))}")
            if refused := self._refusal(command):
                raise Refused(refused)
            await command.run(self, text)
        if command.needs is not None:
            self.live.ask()

    def _refusal(self, command: commands.Command) -> str | None:
        row = self.table.row if self.is_mounted else None
        invoker = None if row is None else self.resource.invoker(row)
        return commands.refusal(
            command, self.rt.policy, self.actor, invoker, read_only=self.read_only
        )

    @on(messages.Found)
    def _found(self, found: messages.Found) -> None:
        for name, state in self._states.items():
            same = VIEWS[name] is found.resource and state.filter == found.query.filter
            if same and state.limit == found.query.limit:
                self._states[name] = replace(state, rows=found.rows)
                if name == self._view:
                    self._draw()

    @on(messages.Counted)
    def _count(self, counted: messages.Counted) -> None:
        self._counted_at = time.monotonic()
        self.query_one(Overview).show(counted.vitals, self.live.now)

    @on(messages.Lost)
    def _lost(self, lost: messages.Lost) -> None:
        self.query_one(Banner).show(lost)

    @on(messages.Back)
    def _back(self) -> None:
        self.query_one(Banner).show(None)
        self.say("the database is there again")

    @on(messages.Refused)
    def _refused(self, refused: messages.Refused) -> None:
        self.refuse(refused.error)
        self._change(filter=filters.NOTHING)

    @on(CommandLine.Entered)
    def _entered(self, entered: CommandLine.Entered) -> None:
        with self.said():
            if entered.kind == "/":
                self.narrow(filters.parse(entered.text))
            elif entered.text:
                self.do(*commands.of(entered.text))
            self.query_one(CommandLine).close()

    @on(CommandLine.Left)
    def _left(self) -> None:
        self.table.focus()

    @on(ResourceTable.Moved)
    def _moved(self) -> None:
        self.refresh_bindings()

    @on(ResourceTable.Opened)
    def _opened(self) -> None:
        self.do(commands.BY_NAME["open"])

    @on(ResourceTable.AtEnd)
    def _at_end(self, end: ResourceTable.AtEnd) -> None:
        """Read on: more rows below these, then from the last one on; and back again."""
        state = self.state
        if end.way < 0 and state.starts:
            self._change(starts=state.starts[:-1], rows=None)
        elif end.way > 0 and state.rows is not None and state.rows.next is not None:
            if state.limit < MOST:
                self._change(limit=min(MOST, state.limit + PAGE))
            else:
                self._change(starts=(*state.starts, state.rows.next))

    def _change(self, **fields: Any) -> None:
        self._states[self._view] = replace(self.state, **fields)
        self._show()

    def _show(self) -> None:
        """Show what is known of this table, and ask for what is there now."""
        state = self.state
        before = state.starts[-1] if state.starts else None
        self.live.show(self.resource, Query(state.filter, self.live.now, before, state.limit))
        self._draw()
        self.refresh_bindings()

    def _draw(self) -> None:
        rows = self.state.rows
        self.table.show(self.resource, _ordered(self.resource, self.state), self.live.now)
        self.query_one(Title).show(self._view, self.state, rows, read_only=self.read_only)

    def _tick(self) -> None:
        self.table.tick(self.live.now)
        old = time.monotonic() - self._counted_at
        self.query_one(Overview).tick(self.live.now, stale=old if old > STALE else 0)


def _ordered(resource: Resource[Any], state: State) -> Sequence[Any]:
    rows = [] if state.rows is None else state.rows.items
    order = next((one.order for one in resource.columns if one.head == state.sort), None)
    if order is not None:
        return sorted(rows, key=order, reverse=state.down)
    return rows[::-1] if state.down else rows
