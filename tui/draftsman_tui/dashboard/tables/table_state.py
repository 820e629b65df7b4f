"""State of a table: filter, order, columns and page, and the title that shows them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from draftsman_tui.dashboard.tables import filter as filters
from draftsman_tui.dashboard.tables.grouping import grouped
from draftsman_tui.dashboard.tables.resource import PAGE, Resource, Rows
from draftsman_tui.dashboard.tables.saved_views import View
from draftsman_tui.dashboard.views import VIEWS
from draftsman_tui.dashboard.widgets.table import LOADING, Shape


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
    folded: frozenset[str] = frozenset()
    """Labels of the folded groups."""

    @property
    def before(self) -> Any:
        """Cursor of the current page."""
        return self.starts[-1] if self.starts else None

    @property
    def shape(self) -> Shape:
        """Display settings for the table widget."""
        return Shape(self.sort, self.down, self.columns, bool(self.filter))

    def grouping(self, resource: Resource[Any]) -> str:
        """Return how the rows are grouped: the default only in the default order."""
        if self.group is not None:
            return self.group
        return "" if self.sort or self.down else resource.default_group

    def as_view(self, table: str) -> View:
        """Convert to a saved view."""
        return View(table, str(self.filter), self.sort, self.down, self.columns, self.group)


def from_view(view: View, name: str) -> TableState:
    """Create the state from a saved view."""
    shown = filters.parse(view.filter), view.sort, view.down, view.columns
    return TableState(*shown, name=name, group=view.group)


def shown_lines(
    resource: Resource[Any], state: TableState, names: Collection[str] | None = None
) -> Sequence[Any] | None:
    """Return the rows in display order, with the heads of groups; None while loading.

    `names` are those of the user, whose rows come first where the table wants this.
    """
    if state.rows is None:
        return None
    rows = _sorted(resource, state, state.rows.items)
    if resource.mine_first and names is not None and not state.sort and not state.down:
        rows = sorted(rows, key=lambda row: not _waits_for(resource, row, names))
    if group := state.grouping(resource):
        order = resource.group_order.get(group, ())
        rules = state.group is None and not state.folded
        return grouped(rows, resource.groups[group], state.folded, order, rules=rules)
    return rows


def _waits_for(resource: Resource[Any], row: Any, names: Collection[str]) -> bool:
    return not set(names).isdisjoint(resource.filter_fields(row).responders)


def _sorted(resource: Resource[Any], state: TableState, rows: Sequence[Any]) -> Sequence[Any]:
    column = next((column for column in resource.columns if column.head == state.sort), None)
    if column is not None and column.order is not None:
        return sorted(rows, key=column.order, reverse=state.down != column.largest_first)
    return rows[::-1] if state.down else rows


def title_parts(table: str, state: TableState, marked: int = 0) -> list[str]:
    """Return the parts of the title."""
    rows = state.rows
    has_more = rows is not None and rows.next is not None
    more = "+" if has_more else ""
    count = LOADING if rows is None else f"{len(rows.items)}{more}"
    parts = [f"{table} {state.name}".strip(), count]
    if rows is not None and (jobs := VIEWS[table].counted(rows.items, more)):
        parts.append(jobs)
    if marked:
        parts.append(f"{marked} marked")
    if state.filter:
        parts.append(f"/{state.filter}")
    if state.sort or state.down:
        arrow = "↓" if state.down else "↑"
        among = f" among the loaded {len(rows.items)}" if rows is not None and has_more else ""
        parts.append(f"by {(state.sort or 'default').lower()} {arrow}{among}")
    if state.group:
        parts.append(f"grouped by {state.group}")
    elif state.group == "" and VIEWS[table].default_group:
        parts.append("not grouped")
    if state.starts:
        parts.append(f"page {len(state.starts) + 1}")
    if rows is not None and rows.scanned:
        parts.append(rows.scanned)
    return parts
