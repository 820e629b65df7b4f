"""How a table was left: what it shows, in which order, from where on; and how its title says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from draftsman_tui.dashboard import filter as filters
from draftsman_tui.dashboard.resource import PAGE, Resource, Rows
from draftsman_tui.dashboard.saved_views import View
from draftsman_tui.dashboard.widgets.table import LOOKING, Shape


@dataclass(frozen=True, slots=True)
class TableState:
    """One table's. `name` is the saved view that it was made from, while it is that."""

    filter: filters.Filter = filters.NOTHING
    sort: str | None = None
    down: bool = False
    columns: tuple[str, ...] = ()
    limit: int = PAGE
    starts: tuple[Any, ...] = ()
    """Where the pages before this one began, and this one last."""
    rows: Rows[Any] | None = None
    name: str = ""

    @property
    def before(self) -> Any:
        """Where the page begins."""
        return self.starts[-1] if self.starts else None

    @property
    def shape(self) -> Shape:
        """How the table shows it."""
        return Shape(self.sort, self.down, self.columns, bool(self.filter))

    def as_view(self, table: str) -> View:
        """Return what is kept of it under a name."""
        return View(table, str(self.filter), self.sort, self.down, self.columns)


def of_view(view: View, name: str) -> TableState:
    """Return the state that a saved view stands for."""
    return TableState(filters.parse(view.filter), view.sort, view.down, view.columns, name=name)


def ordered(resource: Resource[Any], state: TableState) -> Sequence[Any] | None:
    """Return the rows in the order wanted; None: they are looked for."""
    if state.rows is None:
        return None
    rows = state.rows.items
    order = next((one.order for one in resource.columns if one.head == state.sort), None)
    if order is not None:
        return sorted(rows, key=order, reverse=state.down)
    return rows[::-1] if state.down else rows


def titled(table: str, state: TableState, marked: int = 0) -> list[str]:
    """Return what the title says."""
    rows = state.rows
    more = rows is not None and rows.next is not None
    many = LOOKING if rows is None else str(len(rows.items)) + (" and more" if more else "")
    parts = [f"{table} {state.name}".strip(), many]
    if marked:
        parts.append(f"{marked} marked")
    if state.filter:
        parts.append(f"/{state.filter}")
    if state.sort or state.down:
        arrow = "↓" if state.down else "↑"
        among = f" among these {len(rows.items)}" if rows is not None and more else ""
        parts.append(f"by {(state.sort or 'place').lower()} {arrow}{among}")
    if state.starts:
        parts.append(f"page {len(state.starts) + 1}")
    if rows is not None and rows.looked:
        parts.append(rows.looked)
    return parts
