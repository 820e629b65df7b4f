"""Lists of commands, from the definition of their entity."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar

from draftsman.entities.entity import Column, Entity, ListedEntity, Surface
from draftsman.formats.amounts import COUNT_LIMIT
from draftsman_tui.terminal.colors import CELL_STYLES
from draftsman_tui.terminal.output import GAP, styled

if TYPE_CHECKING:
    from rich.text import Text

    from draftsman_tui.cli.app import App

T = TypeVar("T")
MAX_ROWS: Final = 1000
"""Maximum number of rows of a listing."""
SELECTED_FROM: Final = f"--where and --sort looked at the first {COUNT_LIMIT:,} {{}}"


def list_rows(entity: ListedEntity[Any]) -> Callable[[App], Awaitable[None]]:
    """Return the function of the command that prints the listing of an entity."""
    listing = entity.listing

    async def print_rows(app: App) -> None:
        async with app.runtime(read_only=True) as rt:
            rows = await listing.read(rt, rows_to_read(app, MAX_ROWS))
        print_list(app, entity, rows, limit=MAX_ROWS)

    print_rows.__doc__ = f"List {listing.help[0].lower()}{listing.help[1:]}"
    return print_rows


def rows_to_read(app: App, limit: int) -> int:
    """Return how many rows a list reads: one more than it shows, which `print_list` leaves out.

    Those that are counted, or from which `--where` and `--sort` select, are at most `COUNT_LIMIT`.
    """
    return COUNT_LIMIT if app.counts or app.selects else limit + 1


def print_count(app: App, count: int) -> None:
    """Print how many rows a list has, `10000+` from the number at which counts end."""
    capped = count >= COUNT_LIMIT
    shown = min(count, COUNT_LIMIT)
    app.out.result({"count": shown, "capped": capped}, f"{shown}{'+' if capped else ''}")


def print_list(
    app: App,
    entity: Entity[T],
    rows: Sequence[T],
    empty: str = "",
    now: datetime | None = None,
    *,
    unknown: str = "",
    limit: int | None = None,
) -> None:
    """Print rows as JSON or as a table, or else what to do; with `--count` their number alone.

    `empty` is what to do about a selection without a row.

    `unknown` is the sentence about a value of a filter that nothing has, if it is one.

    Only those that the options of the list select are printed, in their order. Of more rows than
    `limit` the rest is left out, which stderr says also beside a pipe.
    """
    now = now or datetime.now(UTC)
    is_part = app.selects and len(rows) >= COUNT_LIMIT
    rows = selected(app, entity, rows, now)
    if limit is not None and len(rows) > limit and not app.counts:
        rows = rows[:limit]
        more = "" if limit == MAX_ROWS else f"; for more, use --limit, at most {MAX_ROWS:,}"
        app.out.info(f"the first {limit:,} are listed{more}")
    if is_part:
        app.out.info(SELECTED_FROM.format("rows of the list"))
    if app.counts:
        print_count(app, len(rows))
    elif app.json:
        app.out.document([entity.data(row) for row in rows])
    if unknown:
        app.out.info(unknown)
    elif app.json or app.counts:
        return
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
    columns = entity.requested(Surface.COMMANDS, app.sort, app.where)
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
        [column.heading for column, _ in shown],
        zip(*(cells for _, cells in shown), strict=True),
        flexible=[nth for nth, (column, _) in enumerate(shown) if column.cut],
        right=[nth for nth, (column, _) in enumerate(shown) if column.right],
    )


def _text(column: Column[T], row: T, now: datetime) -> Text:
    cell = column.cell(row, now)
    return styled(cell.text, CELL_STYLES.get(cell.role, ""))


def _full_width(shown: Sequence[tuple[Column[Any], Sequence[Text]]]) -> int:
    """Return the width of a table in which nothing is truncated."""
    widths = [
        max(len(column.heading), *(cell.cell_len for cell in cells)) for column, cells in shown
    ]
    return sum(widths) + GAP * (len(widths) - 1)
