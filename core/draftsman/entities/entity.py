"""The definition of an entity: lists of the command line, tables of the dashboard and the web.

Services are not imported: the help of a command shows the columns.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypeVar

from draftsman.entities.cells import Cell
from draftsman.entities.terms import ColumnTerm, Measure, parse_search, parse_term
from draftsman.errors import UsageError
from draftsman.formats.json_data import as_data
from draftsman.formats.near_names import near_or_all

if TYPE_CHECKING:
    from draftsman.runtime import Runtime

T = TypeVar("T")
DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
START_WORKER: Final = "to start a worker: draftsman up"


class Surface(StrEnum):
    """Where rows are shown."""

    COMMANDS = "commands"
    DASHBOARD = "dashboard"
    PAGES = "pages"


@dataclass(frozen=True)
class Column(Generic[T]):
    """A column. `width` in cells; 0 takes the remaining width.

    With `most`, it grows with its visible text up to that width. In a list of the command line it
    is as wide as its text; with `cut`, a terminal that is too narrow truncates it.
    """

    head: str
    """A word. The same word has the same `help` in every entity."""
    width: int = 0
    _: KW_ONLY
    help: str
    """What the head means, as a sentence."""
    cell: Callable[[T, datetime], Cell]
    """The cell of a row at a time, to which ages are relative."""
    right: bool = False
    from_width: int = 0
    """Width of the terminal from which it is shown; a list of the command line shows it on a
    narrower one, too, where all columns fit."""
    most: int = 0
    cut: bool = False
    order: Callable[[T], Any] | None = None
    """Sort key, which filters compare, too; None: not sortable. Rows whose key is None are last."""
    measure: Measure | None = None
    """What filters compare it with; None: conditions can only name its text."""
    largest_first: bool = False
    """Whether the largest values are first until the order is reversed."""
    optional: bool = False
    """Whether it is hidden while none of the rows has a text for it."""
    on_request: bool = False
    """Whether it is shown only where it is chosen, or named by the order or a condition."""
    below: str = ""
    """Head of the column below which it is shown where rows have two lines."""
    only: Surface | None = None
    """The only surface that shows it; None: all."""
    title: str = ""
    """The heading, if the head is no word for people; orders and conditions name the head."""

    @property
    def heading(self) -> str:
        """The words above the column."""
        return self.title or self.head


def in_order(rows: Sequence[T], order: Callable[[T], Any], *, reverse: bool) -> list[T]:
    """Return rows by a sort key; those without one are last in both directions."""
    with_value = [row for row in rows if order(row) is not None]
    without = [row for row in rows if order(row) is None]
    return [*sorted(with_value, key=order, reverse=reverse), *without]


def _full_text(cell: Cell) -> str:
    return f"{cell.text}\n{cell.full}"


@dataclass(frozen=True)
class Listing(Generic[T]):
    """A list of an entity that each surface has, made from its definition alone.

    The command line has a command of this name in the `section` of its help, the dashboard a table,
    and browsers a page. A surface with a list of its own uses that instead.
    """

    name: str
    help: str
    """What it lists: a sentence, and after an empty line details."""
    read: Callable[[Runtime, int], Awaitable[Sequence[T]]]
    """Reads the first rows, at most that many if there may be many."""
    key: Callable[[T], str]
    """The stable id of a row."""
    opens: Callable[[T], str] = lambda _: ""
    """The name of the job or question that a row is about, as one of its cells has it; "": none."""
    jobs: Callable[[T], Mapping[str, str]] = lambda _: {}
    """The filter of the jobs that a row has; none: it has no jobs of its own."""
    section: str = ""
    """The section of its command; "": the command line has a command of its own."""


@dataclass(frozen=True)
class Entity(Generic[T]):
    """What is listed: its columns, its JSON, and what to do if there is none."""

    columns: tuple[Column[T], ...]
    empty: str
    """What an empty list says, without a capital."""
    hint: str = ""
    """What to do then: `to …: command`."""
    data: Callable[[T], Any] = as_data
    """The JSON object of a row, whose names are an interface."""
    json_class: str = ""
    """The class whose fields that object has: `draftsman.queues.queue_models:QueueSummary`."""
    json_more: Mapping[str, Any] = field(default_factory=dict)
    """The schemas of its other fields, by name."""

    searched: Callable[[T], str] = lambda _: ""
    """Text of a row that a search finds besides that of its columns."""

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the list."""
        from draftsman.formats.class_schema import schema_of

        module, _, name = self.json_class.partition(":")
        row = schema_of(getattr(import_module(module), name))
        row["properties"] |= self.json_more
        row["required"] += self.json_more
        definitions = row.pop("$defs", {})  # of a model, which names them from the root
        schema = {"$schema": DIALECT, "type": "array", "items": row}
        return schema | ({"$defs": definitions} if definitions else {})

    def select(
        self,
        rows: Sequence[T],
        now: datetime,
        *,
        sort: str = "",
        where: Sequence[str] = (),
        search: str = "",
    ) -> Sequence[T]:
        """Return the rows that match conditions on columns, sorted by a column if it is given.

        `search` has words and conditions, all of which have to match. `-` before the column sorts
        in descending order. Raises UsageError.
        """
        words, terms = parse_search(search, self.columns)
        for text in where:
            terms.append(parse_term(text))
            terms[-1].check(self.columns)
        if words or terms:
            rows = [row for row in rows if self._matches(row, words, terms, now)]
        if not sort:
            return rows
        columns = {column.head.lower(): column for column in self.columns}
        if (column := columns.get(sort.removeprefix("-").lower())) is None:
            known = near_or_all(sort.removeprefix("-"), columns, "available")
            raise UsageError(f"cannot sort by {sort!r}{known}")
        order = column.order or (lambda row: column.cell(row, now).text)
        return in_order(rows, order, reverse=sort.startswith("-"))

    def _matches(
        self, row: T, words: Sequence[str], terms: Sequence[ColumnTerm], now: datetime
    ) -> bool:
        heads = {term.head for term in terms}
        texts = [
            _full_text(column.cell(row, now)) if words or column.head.casefold() in heads else ""
            for column in self.columns
        ]
        text = "\n".join([*texts, self.searched(row)]).casefold()
        return all(word in text for word in words) and all(
            term.matches(row, self.columns, texts, now) for term in terms
        )

    def with_cell(self, head: str, cell: Callable[[T, datetime], Cell]) -> Self:
        """Return the entity with other cells of a column."""
        columns = [
            replace(column, cell=cell) if column.head == head else column for column in self.columns
        ]
        return replace(self, columns=tuple(columns))

    def columns_of(self, surface: Surface) -> tuple[Column[T], ...]:
        """Return the columns that a surface shows."""
        return tuple(column for column in self.columns if column.only in (None, surface))

    def requested(self, surface: Surface, sort: str, where: Sequence[str]) -> list[Column[T]]:
        """Return the columns that a surface shows with an order and conditions."""
        heads = {parse_term(text).head for text in where} | {sort.removeprefix("-").lower()}
        return [
            column
            for column in self.columns_of(surface)
            if not column.on_request or column.head.lower() in heads
        ]

    def text_lines(self, rows: Iterable[T], now: datetime) -> Iterator[str]:
        """Yield the cells of each row as a line."""
        for row in rows:
            texts = (column.cell(row, now).text for column in self.columns)
            yield "  ".join(filter(None, texts))

    def help_lines(self) -> Iterator[tuple[str, str]]:
        """Yield each head of the command line with what it means."""
        yield from ((column.head, column.help) for column in self.columns_of(Surface.COMMANDS))


@dataclass(frozen=True, kw_only=True)
class ListedEntity(Entity[T]):
    """An entity with a list of its own on each surface."""

    listing: Listing[T]
