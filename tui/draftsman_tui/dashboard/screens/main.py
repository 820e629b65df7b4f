"""The desk with the tables: one at a time, filtered, sorted, marked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from textual import on
from textual.widget import Widget

from draftsman.errors import Refused
from draftsman_tui.dashboard import commands, messages
from draftsman_tui.dashboard import filter as filters
from draftsman_tui.dashboard.live import Page
from draftsman_tui.dashboard.resource import MOST, PAGE, Query, Resource, Rows
from draftsman_tui.dashboard.screens.desk import Desk, Session
from draftsman_tui.dashboard.screens.job import JobScreen
from draftsman_tui.dashboard.views import VIEWS
from draftsman_tui.dashboard.widgets.table import ResourceTable
from draftsman_tui.dashboard.widgets.title import Title


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


class MainScreen(Desk):
    """Every table."""

    def __init__(self, session: Session, view: str) -> None:
        super().__init__(session)
        self._view = view
        self._states = dict.fromkeys(VIEWS, State())
        self._sought: str | None = None

    @property
    def place(self) -> str:
        """The name of the table."""
        return self._view

    @property
    def look(self) -> Page:
        """The page of the table."""
        state = self.state
        before = state.starts[-1] if state.starts else None
        return Page(self.resource, Query(state.filter, self.live.now, before, state.limit))

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

    @property
    def question(self) -> tuple[int, int] | None:
        """The open question that the row is about."""
        row = self.table.row
        return None if row is None else self.resource.question(row)

    @property
    def deliveries(self) -> list[int]:
        """The chosen deliveries."""
        return [int(key) for key in self.ids] if self._view == "deliveries" else []

    @property
    def ids(self) -> list[str]:
        """The ids of the chosen rows."""
        return [self.resource.key(row) for row in self.table.chosen]

    @property
    def address(self) -> str | None:
        """The page that the row has."""
        row = self.table.row
        return None if row is None else self.resource.address(row)

    @property
    def invoker(self) -> str | None:
        """Who asked for the job of the row."""
        row = self.table.row
        return None if row is None else self.resource.invoker(row)

    def body(self) -> Iterable[Widget]:
        """Return the table."""
        yield ResourceTable()

    @property
    def home(self) -> Widget:
        """The table."""
        return self.table

    def on_mount(self) -> None:
        """Begin with the table."""
        self.table.focus()
        self._draw()

    def tick(self) -> None:
        """Draw ages anew as well."""
        super().tick()
        self.table.tick(self.live.now)

    def go(self, view: str, wanted: filters.Filter | None = None) -> None:
        """Show another table."""
        self._view = view
        self.table.unmark()
        if wanted is None:
            self._show()
        else:
            self.narrow(wanted)

    def open_job(self, number: int, part: str = "timeline", key: str | None = None) -> None:
        """Show a job over the table."""
        self.app.push_screen(JobScreen(self.session, self, number, part, key))

    async def open_row(self) -> None:
        """Open the job of the row."""
        row = self.table.row
        number = None if row is None else self.resource.job(row)
        if number is None:
            raise Refused("choose a row that is about a job first")
        self.open_job(number, *self.resource.item(row))

    def step(self, by: int, number: int) -> int | None:
        """Put the cursor on the next row (-1: the one before) about another job than this.

        Return that job, None where there is none.
        """
        table = self.table
        end = len(table.rows) if by > 0 else -1
        for place in range(table.place + by, end, by):
            found = self.resource.job(table.rows[place])
            if found not in (None, number):
                table.go_to(table.keys[place])
                return found
        return None

    def narrow(self, wanted: filters.Filter) -> None:
        """Show only some rows."""
        self._change(filter=wanted, limit=PAGE, starts=(), rows=None)

    def sort(self, head: str | None, *, turn: bool = False) -> None:
        """Sort by a column, or by none."""
        self._change(sort=head, down=self.state.down ^ turn)

    def jobs(self, *, optional: bool = False) -> list[int]:
        """Return the jobs of the chosen rows, each once; raises Refused where there is none."""
        found = (self.resource.job(row) for row in self.table.chosen)
        numbers = list(dict.fromkeys(number for number in found if number is not None))
        if not numbers and not optional:
            raise Refused("choose a row that is about a job first")
        return numbers

    def keep(self, numbers: Sequence[int]) -> None:
        """Leave marked only the rows of these jobs, of those that were."""
        table, wanted = self.table, set(numbers)
        table.marked &= {
            self.resource.key(r) for r in table.chosen if self.resource.job(r) in wanted
        }
        table.refresh()

    def seek(self, number: int) -> None:
        """Let the cursor go to a job as soon as it is there."""
        self._sought = f"D-{number}"
        self._draw()

    @on(messages.Found)
    def _found(self, found: messages.Found) -> None:
        for name, state in self._states.items():
            query = found.query
            before = state.starts[-1] if state.starts else None
            asked = VIEWS[name], state.filter, before, state.limit
            if asked == (found.resource, query.filter, query.before, query.limit):
                self._states[name] = replace(state, rows=found.rows)
                if name == self._view:
                    self._draw()

    def refused(self) -> None:
        """Take the filter off that cannot be."""
        self._change(filter=filters.NOTHING)

    def entered(self, kind: str, text: str) -> None:
        """Filter, or do what was typed."""
        if kind == "/":
            self.narrow(filters.parse(text))
        else:
            super().entered(kind, text)

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
            shown = replace(state.rows, next=None)  # asked for once, however often a key repeats
            if state.limit < MOST:
                self._change(limit=min(MOST, state.limit + PAGE), rows=shown)
            else:
                self.table.place = 0
                self._change(starts=(*state.starts, state.rows.next), rows=shown)

    def _change(self, **fields: Any) -> None:
        self._states[self._view] = replace(self.state, **fields)
        self._show()

    def _show(self) -> None:
        """Show what is known of this table, and ask for what is there now."""
        self.live.show(self.look)
        self._draw()
        self.refresh_bindings()

    def _draw(self) -> None:
        self.table.show(self.resource, _ordered(self.resource, self.state), self.live.now)
        if self._sought in self.table.keys:
            self.table.go_to(str(self._sought))
            self._sought = None
        self.query_one(Title).show(*_titled(self._view, self.state), read_only=self.read_only)


def _ordered(resource: Resource[Any], state: State) -> Sequence[Any]:
    rows = [] if state.rows is None else state.rows.items
    order = next((one.order for one in resource.columns if one.head == state.sort), None)
    if order is not None:
        return sorted(rows, key=order, reverse=state.down)
    return rows[::-1] if state.down else rows


def _titled(view: str, state: State) -> list[str]:
    rows = state.rows
    many = "looking …" if rows is None else str(len(rows.items))
    if rows is not None and rows.next is not None:
        many += " and more"
    parts = [view, many]
    if state.filter:
        parts.append(f"/{state.filter}")
    if state.sort or state.down:
        parts.append(f"by {(state.sort or 'place').lower()} {'↓' if state.down else '↑'}")
    if state.starts:
        parts.append(f"page {len(state.starts) + 1}")
    if rows is not None and rows.looked:
        parts.append(rows.looked)
    return parts
