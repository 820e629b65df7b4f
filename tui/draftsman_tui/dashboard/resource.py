"""What a table shows: a resource says how it is read, named, filtered and written in cells.

No Textual here: a resource turns the values of a service into plain cells, so that it is tested
without a screen.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeVar

from draftsman.errors import UsageError
from draftsman_tui.dashboard import status_aliases
from draftsman_tui.dashboard.filter import Filter, FilterFields

if TYPE_CHECKING:
    from draftsman.runtime import Runtime

T = TypeVar("T")
PAGE: Final = 200
"""Rows that are read at first, and added each time the end is reached."""
MOST: Final = 1000
"""Rows that a table holds; to go on from there is to leave the first ones."""
ROUNDS: Final = 5
"""Pages that one look goes through for rows that a filter of ours wants."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A piece of text and what it is: a role that the theme has a colour for."""

    text: str
    role: str = ""


@dataclass(frozen=True)
class Column(Generic[T]):
    """A column. `width` in cells; 0 is the one that takes what is left.

    One with `from_width` is shown from a terminal of so many cells on. One with `most` is as wide
    as its text in view, up to that; beyond, and as any other, where room is left.
    """

    head: str
    width: int
    right: bool = False
    from_width: int = 0
    most: int = 0
    order: Callable[[T], Any] | None = None
    """What rows are sorted by; None: they are not."""


@dataclass(frozen=True, slots=True)
class Query:
    """What is wanted of a resource: which rows, from where on, how many."""

    filter: Filter
    now: datetime
    """By the database's clock."""
    before: Any = None
    limit: int = PAGE


@dataclass(frozen=True)
class Rows(Generic[T]):
    """What was found. `next` is what to ask for `before` to go on; None: that was all."""

    items: Sequence[T]
    next: Any = None
    looked: str = ""
    """Where a look ended that found less than was wanted."""


class Resource(ABC, Generic[T]):
    """One kind of thing. A subclass is a small file: columns, a page, a name, cells."""

    name: ClassVar[str]
    """What `:` takes, and what the title says."""
    help: ClassVar[str]
    empty: ClassVar[str]
    """What is said where there is nothing, and what to do about it."""
    statuses: ClassVar[Sequence[str]] = ()
    """What `status:` may name here."""
    fields: ClassVar[Sequence[str]] = ()
    """Fields of a filter that its rows have: those that `facts` fills, and `age` for `at`."""
    columns: tuple[Column[T], ...]
    poll_interval: ClassVar[float] = 10.0
    """Seconds after which it is read again though no event told of a change."""
    follows: ClassVar[bool] = False
    """Whether a cursor on the first row stays there when new rows come, instead of on its row."""

    @abstractmethod
    async def read(self, rt: Runtime, query: Query) -> Rows[T]:
        """Return rows that the database filtered as far as its services can."""

    @abstractmethod
    def key(self, row: T) -> str:
        """Return what stays the same of a row while its cells change, and what is copied."""

    @abstractmethod
    def cells(self, row: T, now: datetime) -> Sequence[Cell]:
        """Return one cell a column."""

    @abstractmethod
    def filter_fields(self, row: T) -> FilterFields:
        """Return what a filter looks at."""

    def job(self, row: T) -> int | None:
        """Return the job that a row is about."""
        return None

    def invoker(self, row: T) -> str | None:
        """Return who asked for the job, where the row tells."""
        return None

    def question(self, row: T) -> tuple[int, int] | None:
        """Return the open question that a row is about: job and ordinal."""
        return None

    def item(self, row: T) -> tuple[str, str | None]:
        """Return the part of the job screen that a row leads to, and an item there."""
        return "timeline", None

    def address(self, row: T) -> str | None:
        """Return the page in a browser that a row has."""
        return None

    def resolve(self, wanted: Filter) -> Filter:
        """Return a filter with the full names of its statuses.

        Raises UsageError for a field or a status that no row here has.
        """
        if strange := [name for name in wanted.fields if name not in self.fields]:
            raise UsageError(
                f"{self.name}: no row has a field {strange[0]!r}; {self._known_fields}"
            )
        found: list[str] = []
        for name in wanted.statuses:
            if not (meant := status_aliases.matching(name, self.statuses)):
                known = ", ".join(self.status_words)
                raise UsageError(f"unknown status {name!r}; one of: {known}")
            found += meant
        return replace(wanted, statuses=tuple(dict.fromkeys(found)))

    @property
    def _known_fields(self) -> str:
        known = [f"{name}:" for name in self.fields if name != "age"]
        known += ["age<", "age>"] * ("age" in self.fields)
        return f"fields here: {' '.join(known)}" if known else "give words"

    @property
    def status_words(self) -> Sequence[str]:
        """Return what completes `status:`."""
        waiting = len(status_aliases.matching("waiting", self.statuses)) > 1
        return ("waiting", *self.statuses) if waiting else self.statuses

    async def fetch(self, rt: Runtime, query: Query) -> Rows[T]:
        """Return the rows that the filter wants, after a bounded look at most."""
        query = replace(query, filter=self.resolve(query.filter))
        kept: list[T] = []
        before, looked = query.before, ""
        for _ in range(ROUNDS):
            wanted = replace(query, before=before, limit=query.limit - len(kept))
            found = await self.read(rt, wanted)
            kept += [row for row in found.items if self._is_wanted(row, query)]
            before, looked = found.next, found.looked
            if before is None or len(kept) >= query.limit:
                return Rows(kept, before, looked)
        return Rows(kept, before, looked or "the newest were looked through; go on at the end")

    def _is_wanted(self, row: T, query: Query) -> bool:
        if not query.filter:
            return True
        facts = self.filter_fields(row)
        if query.filter.searches:
            facts = replace(facts, shown=self._shown(row, facts.status, query.now))
        return query.filter.matches(facts, query.now)

    def _shown(self, row: T, status: str, now: datetime) -> str:
        """Return what the columns of a row show, in view or not, and the names of its status."""
        texts = (cell.text for cell in self.cells(row, now))
        return " ".join(filter(None, (*texts, status_aliases.words(status))))


def page(items: Sequence[T], limit: int, cursor: Callable[[T], Any]) -> Rows[T]:
    """Return rows whose last one tells where the next page begins, if there is one."""
    return Rows(items, cursor(items[-1]) if len(items) >= limit > 0 else None)
