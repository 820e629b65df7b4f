"""Lists of commands, from the definition of their entity."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

from draftsman.entities.entity import Column, Entity, Surface
from draftsman_tui.terminal.colors import CELL_STYLES
from draftsman_tui.terminal.output import GAP, styled

if TYPE_CHECKING:
    from rich.text import Text

    from draftsman_tui.cli.app import App

T = TypeVar("T")


def print_list(
    app: App, entity: Entity[T], rows: Sequence[T], empty: str = "", now: datetime | None = None
) -> None:
    """Print rows as JSON or as a table, or else what to do; `empty` is about a selection.

    Only those that the options of the list select are printed, in their order.
    """
    now = now or datetime.now(UTC)
    rows = selected(app, entity, rows, now)
    if app.json:
        app.out.document([entity.data(row) for row in rows])
    elif rows:
        print_table(app, entity, rows, now)
    elif app.where:
        app.out.info("nothing matches --where")
    else:
        app.out.info(empty or "; ".join(filter(None, (entity.empty, entity.hint))))


def selected(app: App, entity: Entity[T], rows: Sequence[T], now: datetime) -> Sequence[T]:
    """Return the rows that `--where` selects, in the order of `--sort`.

    Raises UsageError.
    """
    return entity.select(rows, now, sort=app.sort, where=app.where)


def print_table(app: App, entity: Entity[T], rows: Sequence[T], now: datetime) -> None:
    """Print the columns that have a text and fit the terminal."""
    columns = entity.columns_of(Surface.COMMANDS)
    texts = [[_text(column, row, now) for row in rows] for column in columns]
    shown = [
        (column, cells)
        for column, cells in zip(columns, texts, strict=True)
        if not column.optional or any(cells)
    ]
    for width in sorted({column.from_width for column, _ in shown}, reverse=True):
        if width <= app.out.width or _full_width(shown) <= app.out.width:
            break
        shown = [(column, cells) for column, cells in shown if column.from_width < width]
    app.out.table(
        [column.head for column, _ in shown],
        zip(*(cells for _, cells in shown), strict=True),
        flexible=[nth for nth, (column, _) in enumerate(shown) if column.cut],
        right=[nth for nth, (column, _) in enumerate(shown) if column.right],
    )


def _text(column: Column[T], row: T, now: datetime) -> Text:
    cell = column.cell(row, now)
    return styled(cell.text, CELL_STYLES.get(cell.role, ""))


def _full_width(shown: Sequence[tuple[Column[Any], Sequence[Text]]]) -> int:
    """Return the width of a table in which nothing is truncated."""
    widths = [max(len(column.head), *(cell.cell_len for cell in cells)) for column, cells in shown]
    return sum(widths) + GAP * (len(widths) - 1)
