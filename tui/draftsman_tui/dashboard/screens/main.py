"""The desk with the tables: one at a time, filtered, sorted, marked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

from textual import on
from textual.widget import Widget

from draftsman.errors import Refused
from draftsman_tui.dashboard import command_table
from draftsman_tui.dashboard import filter as filters
from draftsman_tui.dashboard.completion import Values
from draftsman_tui.dashboard.polling import messages
from draftsman_tui.dashboard.polling.refresher import TableLoader
from draftsman_tui.dashboard.resource import MOST, PAGE, Query, Resource
from draftsman_tui.dashboard.saved_views import View
from draftsman_tui.dashboard.screens.base import BaseScreen, Session
from draftsman_tui.dashboard.screens.job import JobScreen
from draftsman_tui.dashboard.screens.table_state import TableState, of_view, ordered, titled
from draftsman_tui.dashboard.views import VIEWS
from draftsman_tui.dashboard.widgets.table import ResourceTable
from draftsman_tui.dashboard.widgets.title import Title

SEEN: Final = 200
"""Rows whose values complete a line."""


class MainScreen(BaseScreen):
    """Every table. `view` is the one that comes first, or a saved one with its name."""

    def __init__(self, session: Session, view: str | tuple[str, View]) -> None:
        super().__init__(session)
        self._states = dict.fromkeys(VIEWS, TableState())
        self._sought: str | None = None
        if isinstance(view, str):
            self._view = view
        else:
            name, saved = view
            self._view = saved.table
            self._states[saved.table] = of_view(saved, name)

    @property
    def place(self) -> str:
        """The name of the table."""
        return self._view

    @property
    def look(self) -> TableLoader:
        """The page of the table."""
        state = self.state
        wanted = self.resolve_filter(state.filter)
        return TableLoader(self.resource, Query(wanted, self.live.now, state.before, state.limit))

    @property
    def resource(self) -> Resource[Any]:
        """What is shown."""
        return VIEWS[self._view]

    @property
    def state(self) -> TableState:
        """How it is shown."""
        return self._states[self._view]

    @property
    def table(self) -> ResourceTable:
        """The table."""
        return self.query_one(ResourceTable)

    @property
    def question(self) -> tuple[int, int] | None:
        """The open question that the row is about."""
        rows = self.table.chosen
        return self.resource.question(rows[0]) if len(rows) == 1 else None

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

    @property
    def cursor_line(self) -> int | None:
        """The line of the row under the cursor."""
        return self.table.cursor_line

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
        """Show only some rows; raises UsageError for what no row could be."""
        self._change(
            filter=self.resource.resolve(wanted), limit=PAGE, starts=(), rows=None, name=""
        )

    def sort(self, head: str | None, *, turn: bool = False) -> None:
        """Sort by a column, or by none."""
        self._change(sort=head, down=self.state.down ^ turn, name="")

    def show_columns(self, heads: Sequence[str]) -> None:
        """Show these columns in this order; none: those that fit."""
        self._change(columns=tuple(heads), name="")

    @property
    def shown_columns(self) -> list[str]:
        """The heads of the columns in view."""
        return [one.column.head for one in self.table.arranged.placed]

    def named(self, name: str) -> None:
        """Call the view by the name it was saved under."""
        self._change(name=name)

    def show_view(self, view: View, name: str) -> None:
        """Show a saved view."""
        self._view = view.table
        self.table.unmark()
        self._states[view.table] = of_view(view, name)
        self._show()

    def resolve_filter(self, wanted: filters.Filter) -> filters.Filter:
        """Return the filter with `me` replaced by who looks."""
        me, policy = self.actor.voter, self.rt.policy
        groups = [name for name, members in policy.groups.items() if me in members]
        asked = None if self.actor.owner else (me, *groups, filters.ANYBODY)
        return wanted.of(me, asked)

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
        table.keep(self.resource.key(r) for r in table.chosen if self.resource.job(r) in wanted)

    def seek(self, number: int) -> None:
        """Let the cursor go to a job as soon as it is there."""
        self._sought = f"D-{number}"
        self._draw()

    @on(messages.RowsLoaded)
    def _found(self, found: messages.RowsLoaded) -> None:
        for name, state in self._states.items():
            query = found.query
            asked = VIEWS[name], self.resolve_filter(state.filter), state.before, state.limit
            if asked == (found.resource, query.filter, query.before, query.limit):
                self._states[name] = replace(state, rows=found.rows)
                if name == self._view:
                    self._draw()

    def refused(self) -> None:
        """Take the filter off that cannot be, and let it be mended."""
        text = str(self.state.filter)
        self._change(filter=filters.NOTHING, name="")
        if text:
            self.type("/", text, self.filters_known)

    @property
    def values(self) -> Values:
        """What completes a line, beside what every desk knows."""
        rows = [self.resource.filter_fields(row) for row in self.table.rows[:SEEN]]
        columns = self.resource.columns
        return {
            **super().values,
            "status": self.resource.status_words,
            "repo": _seen(one.repo for one in rows),
            "by": ["me", *_seen(one.by for one in rows)],
            "agent": _seen(one.agent for one in rows),
            "tag": _seen(tag for one in rows for tag in one.tags),
            "source": _seen(one.source for one in rows),
            "for": ["me", *_seen(name for one in rows for name in one.asked)],
            "COLUMN": [one.head.lower() for one in columns if one.order is not None],
            "JOB": _seen(self._name_of(row) for row in self.table.rows[:SEEN]),
        }

    def _name_of(self, row: Any) -> str:
        job = self.resource.job(row)
        return "" if job is None else f"D-{job}"

    def apply_search(self, text: str) -> None:
        """Filter."""
        self.narrow(filters.parse(text))

    @on(ResourceTable.Moved)
    def _moved(self) -> None:
        self.position_toasts()
        self.refresh_bindings()

    @on(ResourceTable.Opened)
    def _opened(self) -> None:
        self.do(command_table.BY_NAME["open"])

    @on(ResourceTable.Headed)
    def _headed(self, clicked: ResourceTable.Headed) -> None:
        self.sort(clicked.head, turn=clicked.head == self.state.sort)

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
        state, resource = self.state, self.resource
        self.table.show(resource, ordered(resource, state), self.live.now, state.shape)
        if self._sought in self.table.keys:
            self.table.go_to(str(self._sought))
            self._sought = None
        self._entitle()

    @on(ResourceTable.Marked)
    def _entitle(self) -> None:
        said = titled(self._view, self.state, len(self.table.marked))
        self.query_one(Title).show(*said, read_only=self.read_only)


def _seen(values: Iterable[str]) -> list[str]:
    return sorted(set(filter(None, values)))
