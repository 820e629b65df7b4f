"""The line above the table: what it shows, how much of it, and how it is narrowed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text
from textual.widgets import Static

from draftsman_tui.cli.output import one_line

if TYPE_CHECKING:
    from draftsman_tui.dashboard.resource import Rows
    from draftsman_tui.dashboard.screens.main import State


class Title(Static):
    """One line."""

    def show(self, view: str, state: State, rows: Rows[Any] | None, *, read_only: bool) -> None:
        """Say it."""
        parts = [view]
        if rows is None:
            parts.append("looking …")
        else:
            more = " and more" if rows.next is not None else ""
            parts.append(f"{len(rows.items)}{more}")
        if state.filter:
            parts.append(f"/{state.filter}")
        if state.sort or state.down:
            parts.append(f"by {(state.sort or 'place').lower()} {'↓' if state.down else '↑'}")
        if state.starts:
            parts.append(f"page {len(state.starts) + 1}")
        if rows is not None and rows.looked:
            parts.append(rows.looked)
        if read_only:
            parts.append("read-only")
        self.update(Text(one_line(" · ".join(parts)), no_wrap=True, overflow="ellipsis"))
