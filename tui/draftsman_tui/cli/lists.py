"""Lists of commands, from the definition of their entity."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

from draftsman_tui.entities.cells import STYLES
from draftsman_tui.entities.entity import Column, Entity, Surface
from draftsman_tui.terminal.output import GAP, MIN_COLUMN_WIDTH, styled

if TYPE_CHECKING:
    from rich.text import Text

    from draftsman_tui.cli.app import App

T = TypeVar("T")


def print_list(app: App, entity: Entity[T], rows: Sequence[T], empty: str = "") -> None:
    """Print rows as JSON or as a table, or else what to do; `empty` is about a selection."""
    if app.json:
        app.out.document([entity.data(row) for row in rows])
    elif rows:
        print_table(app, entity, rows)
    else:
        app.out.info(empty or "; ".join(filter(None, (entity.empty, entity.hint))))


def print_table(app: App, entity: Entity[T], rows: Sequence[T]) -> None:
    """Print the columns that have a text and fit the terminal."""
    now = datetime.now(UTC)
    columns = entity.columns_of(Surface.COMMANDS)
    texts = [[_text(column, row, now) for row in rows] for column in columns]
    shown = [
        (column, cells)
        for column, cells in zip(columns, texts, strict=True)
        if not column.optional or any(cells)
    ]
    for width in sorted({column.from_width for column, _ in shown} - {0}, reverse=True):
        if _needed_width(shown) <= app.out.width:
            break
        shown = [(column, cells) for column, cells in shown if column.from_width < width]
    app.out.table(
        [column.head for column, _ in shown],
        zip(*(cells for _, cells in shown), strict=True),
        flexible=[nth for nth, (column, _) in enumerate(shown) if _is_cut(column)],
        right=[nth for nth, (column, _) in enumerate(shown) if column.right],
    )


def _text(column: Column[T], row: T, now: datetime) -> Text:
    cell = column.cell(row, now)
    return styled(cell.text, STYLES.get(cell.role, ""))


def _is_cut(column: Column[Any]) -> bool:
    return column.cut or not column.width


def _needed_width(shown: Sequence[tuple[Column[Any], Sequence[Text]]]) -> int:
    """Return the width of columns, of which some are cut to their minimum."""
    widths = [max(len(column.head), *(cell.cell_len for cell in cells)) for column, cells in shown]
    return sum(
        min(width, MIN_COLUMN_WIDTH) if _is_cut(column) else width
        for width, (column, _) in zip(widths, shown, strict=True)
    ) + GAP * (len(shown) - 1)
