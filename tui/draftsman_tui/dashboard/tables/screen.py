"""Table screen: one table at a time, filtered, sorted and marked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from textual import events, on
from textual.containers import Container
from textual.widget import Widget

from draftsman.actions.action import About, Action
from draftsman.entities.entity import in_order
from draftsman.errors import Refused
from draftsman.formats.amounts import count_text
from draftsman.ids import job_name
from draftsman.jobs.counts import number_of
from draftsman.jobs.job_summary import JobSummary
from draftsman.questions.question import OpenQuestion
from draftsman_tui.dashboard.attention.attention import AttentionCount
from draftsman_tui.dashboard.frame import messages
from draftsman_tui.dashboard.frame.base_screen import BaseScreen
from draftsman_tui.dashboard.frame.dashboard_stats import DashboardStats
from draftsman_tui.dashboard.frame.named_rows import RUNNING_COMMAND
from draftsman_tui.dashboard.frame.refresher import TableLoader
from draftsman_tui.dashboard.frame.session import Session
from draftsman_tui.dashboard.jobs.details.screen import JobScreen
from draftsman_tui.dashboard.jobs.details.snapshot import JobLoaded
from draftsman_tui.dashboard.tables import filter as filters
from draftsman_tui.dashboard.tables.completion import Completions
from draftsman_tui.dashboard.tables.grouping import NO_FOLDS, Folds, GroupHead, grouped, total_text
from draftsman_tui.dashboard.tables.resource import MAX_ROWS, PAGE, Query, Resource, Rows
from draftsman_tui.dashboard.tables.row_preview import RowPreview
from draftsman_tui.dashboard.tables.saved_views import View, group_text
from draftsman_tui.dashboard.views import VIEWS
from draftsman_tui.dashboard.widgets.preview_pane import PreviewPane
from draftsman_tui.dashboard.widgets.screen_lines import Title
from draftsman_tui.dashboard.widgets.table import LOADING, ResourceTable, Shape
from draftsman_tui.dashboard.widgets.tabs import Tab, Tabs

HOME: Final = "jobs"
"""The table to which escape returns."""
MIN_HEIGHT: Final = 30
"""Height from which the tab bar is shown."""
COUNTED: Final = 100
"""Width from which the numbers are shown."""


def table_tabs(stats: DashboardStats | None, attention: AttentionCount | None) -> Sequence[Tab]:
    """Return a tab for each table with a key."""
    counts = _counts(stats, attention)
    mine = attention.mine if attention is not None else 0
    return [
        Tab(
            name,
            view.short_name or name,
            view.number_key,
            count=counts.get(name),
            needs_attention=name == "inbox" and mine > 0,
        )
        for name, view in VIEWS.items()
        if view.number_key
    ]


def _counts(stats: DashboardStats | None, attention: AttentionCount | None) -> Mapping[str, int]:
    """Return the number of jobs, open questions, open dead letters and workers."""
    counts: dict[str, int] = {}
    if attention is not None:
        counts["inbox"] = attention.open
    if stats is not None:
        counts["jobs"] = number_of("jobs", stats.jobs)
        counts["dead"] = stats.open_failures.get("dead_letter", 0)
        counts["workers"] = sum(stats.workers.health.values())
    return counts


@dataclass(frozen=True, slots=True)
class TableState:
    """State of a table; `name` is its saved view until something changes."""

    filter: filters.Filter = filters.NOTHING
    sort: str | None = None
    down: bool = False
    columns: tuple[str, ...] = ()
    limit: int = PAGE
    starts: tuple[Any, ...] = ()
    """Cursors of the previous pages, and of the current page last."""
    rows: Rows[Any] | None = None
    name: str = ""
    group: str | None = None
    """How the rows are grouped; None: as the table is by default, "": not at all."""
    folded: Folds = NO_FOLDS

    @property
    def plain(self) -> TableState:
        """The table without a saved view, filter and groups."""
        if self.name:
            return TableState()
        if not self.filter and self.group is None and not self.folded:
            return self
        return TableState(sort=self.sort, down=self.down, columns=self.columns)

    @property
    def before(self) -> Any:
        """Cursor of the current page."""
        return self.starts[-1] if self.starts else None

    @property
    def shape(self) -> Shape:
        """Display settings for the table widget."""
        return Shape(
            sort=self.sort,
            down=self.down,
            columns=self.columns,
            filtered=bool(self.filter),
            unknown="" if self.rows is None else self.rows.unknown,
        )

    def grouping(self, resource: Resource[Any]) -> str:
        """Return how the rows are grouped: the default only in the default order."""
        if self.group is not None:
            return self.group
        return "" if self.sort or self.down else resource.default_group

    def as_view(self, table: str) -> View:
        """Convert to a saved view."""
        return View(
            table,
            filter=self.filter.text(VIEWS[table].kinds),
            sort=self.sort,
            down=self.down,
            columns=self.columns,
            group=self.group,
        )


def from_view(view: View, name: str) -> TableState:
    """Create the state from a saved view."""
    return TableState(
        filter=filters.parse(view.filter),
        sort=view.sort,
        down=view.down,
        columns=view.columns,
        name=name,
        group=view.group,
    )


def shown_lines(resource: Resource[Any], state: TableState) -> Sequence[Any] | None:
    """Return the rows in display order, with the heads of groups; None while loading."""
    if state.rows is None:
        return None
    rows = _sorted(resource, state, state.rows.items)
    if not state.sort and not state.down:
        rows = sorted(rows, key=lambda row: not resource.is_first(row))
    if group := state.grouping(resource):
        order = resource.group_order.get(group, ())
        rules = state.group is None and not state.folded
        is_part = state.rows.next is not None or bool(state.starts)
        return grouped(
            rows,
            resource.groups[group],
            state.folded,
            order,
            rules=rules,
            totals=state.rows.group_totals if is_part else {},
            has_more=is_part,
        )
    return rows


def _sorted(resource: Resource[Any], state: TableState, rows: Sequence[Any]) -> Sequence[Any]:
    column = next((column for column in resource.columns if column.head == state.sort), None)
    if column is not None and column.order is not None:
        return in_order(rows, column.order, reverse=state.down != column.largest_first)
    return rows[::-1] if state.down else rows


def title_parts(table: str, state: TableState, marked: int = 0) -> list[str]:
    """Return the parts of the title."""
    rows = state.rows
    has_more = rows is not None and rows.next is not None
    plus = "+" if has_more else ""
    count = LOADING
    if rows is not None:
        is_part = has_more or bool(state.starts)
        count = total_text(rows.total if is_part else None, len(rows.items), has_more=has_more)
        if rows.open is not None and count_text(rows.open) != count:
            count = f"{count_text(rows.open)} open of {count}"
    title = [f"{table} {state.name}".strip(), count]
    if rows is not None and (jobs := VIEWS[table].counted(rows.items, plus)):
        title.append(jobs)
    if marked:
        title.append(f"{marked} marked")
    if state.filter:
        title.append(f"/{state.filter.text(VIEWS[table].kinds)}")
    if state.sort or state.down:
        arrow = "↓" if state.down else "↑"
        among = f" among the loaded {len(rows.items)}" if rows is not None and has_more else ""
        title.append(f"by {VIEWS[table].heading(state.sort or 'default').lower()} {arrow}{among}")
    if text := group_text(table, state.group):
        title.append(text)
    if state.starts:
        title.append(f"page {len(state.starts) + 1}")
    if rows is not None and rows.scanned:
        title.append(rows.scanned)
    if note := VIEWS[table].note:
        title.append(note)
    return title


COMPLETION_ROWS: Final = 200
"""Rows whose values are offered as completions."""


class MainScreen(BaseScreen):
    """All tables. `view` is the initial table, or a saved view with its name."""

    def __init__(self, session: Session, view: str | tuple[str, View]) -> None:
        super().__init__(session)
        self._states = dict.fromkeys(VIEWS, TableState())
        self._sought_key: str | None = None
        self.row_preview = RowPreview(self)
        if isinstance(view, str):
            self._view = view
        else:
            name, saved = view
            self._view = saved.table
            self._states[saved.table] = from_view(saved, name)

    @property
    def view_name(self) -> str:
        return self._view

    @property
    def loader(self) -> TableLoader:
        state = self.state
        table_filter = self.resolve_filter(state.filter)
        query = Query(
            table_filter,
            self.refresher.now,
            before=state.before,
            limit=state.limit,
            group=state.grouping(self.resource),
            viewer=self.actor,
        )
        return TableLoader(self.resource, query)

    @property
    def resource(self) -> Resource[Any]:
        return VIEWS[self._view]

    @property
    def state(self) -> TableState:
        return self._states[self._view]

    @property
    def table(self) -> ResourceTable:
        return self.query_one(ResourceTable)

    def chosen(self, what: str) -> Any:
        self.table.choose()
        if self.table.row is None:
            raise Refused(f"choose a {what} first")
        return self.table.row

    def check_single(self, what: str) -> None:
        if (count := len(self.table.choose())) < 2:
            return
        problem = f", and the group has {count}; choose a row of it"
        if self.table.marked:
            problem = f"; Esc clears {count} marks"
        raise Refused(f"takes one {what} at a time{problem}", subject=RUNNING_COMMAND.get())

    @property
    def unloaded(self) -> int:
        head = None if self.table.marked else self.table.head
        return 0 if head is None or head.total is None else max(0, head.total - len(head.rows))

    @property
    def question(self) -> tuple[int, int] | None:
        rows = self.table.selected
        return self.resource.question(rows[0]) if len(rows) == 1 else None

    @property
    def reviewed_questions(self) -> Sequence[OpenQuestion] | None:
        """The marked questions, or those of a filtered inbox; None: all for the user."""
        if self._view != "inbox" or not (self.table.marked or self.state.filter):
            return None
        rows = self.table.selected if self.table.marked else self.table.rows
        return [row for row in rows if not row.decided_by_viewer]

    @property
    def deliveries(self) -> list[int]:
        return [int(key) for key in self.ids] if self._view == "deliveries" else []

    @property
    def ids(self) -> list[str]:
        return [self.resource.key(row) for row in self.table.selected]

    @property
    def page_url(self) -> str | None:
        row = self.table.row
        return None if row is None else self.resource.page_url(row)

    @property
    def invokers(self) -> Sequence[str]:
        row = self.table.row
        return () if row is None else self.resource.invokers(row)

    @property
    def position(self) -> object:
        return self._view, self.state.filter, self.state.name

    def states(self, action: Action[Any, ..., Any]) -> Sequence[Any] | None:
        rows = self.table.selected if self.is_mounted else ()
        if action.about in (About.JOB, About.QUESTION):
            return rows if all(isinstance(row, JobSummary) for row in rows) else None
        return rows if action.fits is not None else None

    def body(self) -> Iterable[Widget]:
        yield Tabs(wide=COUNTED, counted=COUNTED)
        with Container(id="panes"):
            yield ResourceTable(supervised=self.session.supervised is not None)
            yield PreviewPane()

    @property
    def focus_target(self) -> Widget:
        return self.table

    def on_mount(self) -> None:
        self.table.focus()
        self._draw()

    def tick(self) -> None:
        super().tick()
        self.table.tick(self.refresher.now)
        self.row_preview.draw()
        self._show_tabs()

    def show_table(self, view: str, table_filter: filters.Filter | None = None) -> None:
        if table_filter is not None:
            VIEWS[view].resolve(table_filter)  # a refused filter leaves the table as it is
        if self._states[view].name or (view == self._view and table_filter is None):
            self._states[view] = self._states[view].plain
        self._view = view
        self.table.unmark()
        if table_filter is None:
            self._show()
        else:
            self.apply_filter(table_filter)

    def leave(self) -> None:
        """Leave the saved view, else the filter, the groups, or the table for that of jobs."""
        state = self.state
        if state.filter.job is not None:
            self.limit_to_job(None)
        if state.filter and not state.name:
            self.apply_filter(filters.NOTHING)
        elif state.name or state.group is not None:
            self.show_table(self._view)
        else:
            self.show_table(HOME)

    def open_job(self, number: int, tab: str = "timeline", key: str | None = None) -> None:
        self.app.push_screen(JobScreen(self.session, self, number, tab, key))

    def open_row(self) -> None:
        """Open the job, or the table, of the row under the cursor; fold or unfold a group."""
        if (group := self.table.head) is not None:
            self.fold(self.state.folded.toggle(group.label))
            return
        self.table.choose()
        row = self.table.row
        if row is not None and (table := self.resource.table(row)) is not None:
            self.show_table(*table)
            return
        number = None if row is None else self.resource.job(row)
        if number is None:
            raise Refused("select a row with a job first")
        self.open_job(number, *self.resource.item(row))

    def next_job(self, by: int, number: int) -> int | None:
        """Move the cursor to the next row (-1: previous) of a different job, and return that job.

        Returns None at the end of the table.
        """
        table = self.table
        end = len(table.lines) if by > 0 else -1
        for index in range(table.cursor + by, end, by):
            line = table.lines[index]
            job = None if isinstance(line, GroupHead) else self.resource.job(line)
            if job not in (None, number):
                table.go_to(table.keys[index])
                return job
        return None

    def apply_filter(self, table_filter: filters.Filter) -> None:
        """Filter the rows; raises UsageError if the table does not support the filter."""
        self._change(
            filter=self.resource.resolve(table_filter), limit=PAGE, starts=(), rows=None, name=""
        )

    def limit_to_job(self, name: str | None) -> None:
        """Show only a job and its tree in each table that has them; None: all rows."""
        for table, state in self._states.items():
            if "job" in VIEWS[table].fields and (name or state.filter.job):
                fields: dict[str, Any] = {"starts": (), "rows": None, "limit": PAGE, "name": ""}
                job_filter = replace(state.filter, job=name)
                self._states[table] = replace(state, filter=job_filter, **fields)
        self._show()

    def sort(self, head: str | None, *, reverse: bool = False) -> None:
        """Sort by a column, or in the default order; `reverse` flips the direction."""
        self._reorder(sort=head, down=self.state.down ^ reverse if head or reverse else False)

    def group_by(self, name: str) -> None:
        """Group the rows; an empty name ungroups them."""
        self._reorder(group=name, folded=NO_FOLDS)

    def _reorder(self, **fields: Any) -> None:
        """Change the order; a table that is read in another order starts again at its top."""
        default_group = self.resource.default_group
        previous_group = self.state.grouping(self.resource)
        group = replace(self.state, **fields).grouping(self.resource)
        if self.state.starts and default_group and default_group in (previous_group, group):
            fields |= {"starts": (), "limit": PAGE}
        self._change(**fields, name="")

    @property
    def group_labels(self) -> frozenset[str]:
        """Labels of the groups in the table."""
        return frozenset(line.label for line in self.table.lines if isinstance(line, GroupHead))

    def fold(self, folded: Folds) -> None:
        """Fold these groups, and no others."""
        self._states[self._view] = replace(self.state, folded=folded)
        self._draw()

    def show_columns(self, heads: Sequence[str]) -> None:
        """Show the columns in the given order; if empty, those that fit."""
        self._change(columns=tuple(heads), name="")

    @property
    def shown_columns(self) -> list[str]:
        """Heads of the visible columns."""
        return [placed.column.head for placed in self.table.column_layout.placed]

    def set_view_name(self, name: str) -> None:
        """Set the name of the saved view."""
        self._change(name=name)

    def show_view(self, view: View, name: str) -> None:
        self._view = view.table
        self.table.unmark()
        self._states[view.table] = from_view(view, name)
        self._show()

    def resolve_filter(self, table_filter: filters.Filter) -> filters.Filter:
        """Return the filter with `me` replaced by the current user."""
        return table_filter.resolve_me(self.actor.voter)

    def jobs(self, *, optional: bool = False) -> list[int]:
        jobs = (self.resource.jobs(row) for row in self.table.choose())
        numbers = list(dict.fromkeys(number for row in jobs for number in row))
        if not numbers and not optional:
            raise Refused("select a row with a job first")
        return numbers

    def release_rows(self, jobs: Sequence[int] | None = None) -> None:
        table = self.table
        if jobs is None:
            table.release(table.selected)
            return
        numbers = set(jobs)
        table.release(row for row in table.rows if not numbers.isdisjoint(self.resource.jobs(row)))

    def keep_rows(self) -> None:
        self.table.release_none()

    def keep_marked(self, numbers: Sequence[int]) -> None:
        table = self.table
        jobs = set(numbers)
        table.keep_marked(
            self.resource.key(row)
            for row in table.selected
            if not jobs.isdisjoint(self.resource.jobs(row))
        )

    def pin_preview(self, job: int | None) -> None:
        self.row_preview.pin(job)

    def seek_job(self, number: int) -> None:
        self._sought_key = job_name(number)
        self._draw()

    @on(messages.RowsLoaded)
    def _rows_loaded(self, loaded: messages.RowsLoaded) -> None:
        for name, state in self._states.items():
            if self._is_current(loaded, VIEWS[name], state):
                self._states[name] = replace(state, rows=loaded.rows)
                if name == self._view:
                    self._draw()

    def _is_current(
        self, loaded: messages.RowsLoaded, resource: Resource[Any], state: TableState
    ) -> bool:
        """Return whether the rows are those that a table shows in this state."""
        query = loaded.query
        return (
            loaded.resource == resource
            and query.filter == self.resolve_filter(state.filter)
            and query.before == state.before
            and query.limit == state.limit
            and query.group == state.grouping(resource)
        )

    def on_rejected_load(self) -> None:
        """Clear the rejected filter, and open its text for editing."""
        text = self.state.filter.text(self.resource.kinds)
        self._change(filter=filters.NOTHING, name="")
        if text:
            self.type("/", text, self.complete_filter)

    @property
    def completions(self) -> Completions:
        """Completion candidates, including values of the loaded rows."""
        rows = [self.resource.filter_fields(row) for row in self.table.rows[:COMPLETION_ROWS]]
        columns = self.resource.columns
        return {
            **super().completions,
            "status": self.resource.status_completions,
            **({"kind": self.resource.kinds} if self.resource.kinds else {}),
            "repo": filters.repo_completions(rows),
            "by": ["me", *_distinct(row.by for row in rows)],
            "agent": _distinct(row.agent for row in rows),
            "tag": _distinct(tag for row in rows for tag in row.tags),
            "source": _distinct(row.source for row in rows),
            "for": _distinct(["me", *(name for row in rows for name in row.responders)]),
            "COLUMN": [row.head.lower() for row in columns if row.order is not None],
            "JOB": _distinct(self._name_of(row) for row in self.table.rows[:COMPLETION_ROWS]),
        }

    def _name_of(self, row: Any) -> str:
        job = self.resource.job(row)
        return "" if job is None else job_name(job)

    def apply_search(self, text: str) -> None:
        self.apply_filter(filters.parse(text))

    @on(ResourceTable.Moved)
    def _moved(self) -> None:
        self.refresh_bindings()
        self.row_preview.follow()

    @on(Tabs.Chosen)
    def _chosen(self, chosen: Tabs.Chosen) -> None:
        with self.leaving_messages():
            self.show_table(chosen.name)

    def _show_tabs(self) -> None:
        bar = self.query_one(Tabs)
        last = self.refresher.last_stats
        bar.display = self.size.height >= MIN_HEIGHT
        stats = None if last is None else last.stats
        bar.show(table_tabs(stats, self.refresher.attention), self._view)

    def on_resize(self, event: events.Resize) -> None:
        self._show_tabs()
        self.row_preview.place()

    @on(JobLoaded)
    def _preview_loaded(self, loaded: JobLoaded) -> None:
        self.row_preview.show(loaded.snapshot)

    def on_screen_suspend(self) -> None:
        super().on_screen_suspend()
        self.row_preview.suspend()

    def on_screen_resume(self) -> None:
        super().on_screen_resume()
        self.row_preview.resume()

    @on(ResourceTable.Opened)
    def _opened(self) -> None:
        self.run(self.commands["open"])

    @on(ResourceTable.Headed)
    def _headed(self, clicked: ResourceTable.Headed) -> None:
        self.sort(clicked.head, reverse=clicked.head == self.state.sort)

    @on(ResourceTable.AtEnd)
    def _at_end(self, end: ResourceTable.AtEnd) -> None:
        """Load more rows up to MAX_ROWS, then page forward; page back at the top."""
        state = self.state
        if end.direction < 0 and state.starts:
            self._change(starts=state.starts[:-1], rows=None)
        elif end.direction > 0 and state.rows is not None and state.rows.next is not None:
            current_rows = replace(state.rows, next=None)  # a repeated key requests it only once
            if state.limit < MAX_ROWS:
                self._change(limit=min(MAX_ROWS, state.limit + PAGE), rows=current_rows)
            else:
                self.table.cursor = 0
                self._change(starts=(*state.starts, state.rows.next), rows=current_rows)

    def _change(self, **fields: Any) -> None:
        self._states[self._view] = replace(self.state, **fields)
        self._show()

    def _show(self) -> None:
        """Show the cached rows, and request current rows."""
        self.load()
        self._draw()
        self.row_preview.place()

    def _draw(self) -> None:
        state = self.state
        resource = self.resource
        lines = shown_lines(resource, state)
        self.table.show(resource, lines, self.refresher.now, state.shape)
        if self._sought_key in self.table.keys:
            self.table.go_to(str(self._sought_key))
            self._sought_key = None
        self._show_title()
        self._show_tabs()
        self.row_preview.follow()
        self.refresh_bindings()

    @on(ResourceTable.Marked)
    def _marked(self) -> None:
        self._show_title()
        self.refresh_bindings()

    def _show_title(self) -> None:
        title = title_parts(self._view, self.state, len(self.table.marked))
        self.query_one(Title).show(*title, read_only=self.read_only)


def _distinct(words: Iterable[str]) -> list[str]:
    return sorted(set(filter(None, words)))
