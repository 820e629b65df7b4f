"""Table resources: how rows are read, identified, filtered and formatted.

Does not import Textual: a resource converts service values to plain cells, so that it can be
tested without a screen.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, ClassVar, Final, Generic, TypeVar

from draftsman.entities.cells import Cell
from draftsman.entities.entity import Column, Entity, ListedEntity, Surface
from draftsman.entities.filter_values import unknown_value
from draftsman.errors import UsageError
from draftsman.formats.near_names import did_you_mean
from draftsman.ids import job_number, parse_job
from draftsman.jobs.status_display import ALIASES, named_statuses
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman.text import capitalized
from draftsman_tui.dashboard.tables.filter import Filter, FilterFields

KIND_ALIASES: Final[dict[str, tuple[str, ...]]] = {
    "input": ("question", "asks"),
    "approval": ("gate",),
}
"""Other words of the kinds of questions."""
MIN_PREFIX: Final = 3
"""Length from which a unique prefix matches a status."""


def matching(name: str, statuses: Sequence[str]) -> tuple[str, ...]:
    """Return the statuses and kinds that match a name exactly, by alias or by unique prefix."""
    kinds = [kind for kind in statuses if name in KIND_ALIASES.get(kind, ())]
    if (named := named_statuses(name, statuses)) or kinds or len(name) < MIN_PREFIX:
        return (*named, *kinds)
    prefixed = tuple(status for status in statuses if status.startswith(name))
    return prefixed if len(prefixed) == 1 else ()


def words(status: str) -> str:
    """Return the spellings and aliases of a status, for text search."""
    spellings = (status.replace("_", sign) for sign in "_ -")
    aliases = (*ALIASES.get(status, ()), *KIND_ALIASES.get(status, ()))
    return " ".join(dict.fromkeys((*spellings, *aliases)))


T = TypeVar("T")
PAGE: Final = 200
"""Rows of a page."""
MAX_ROWS: Final = 1000
"""Rows that a table holds; scrolling past them drops the first."""
NUMBER_KEYS: Final = "1234567890"
"""Keys of tables and of the tabs of a job, in their order."""
MAX_PAGES: Final = 5
"""Pages that a fetch scans for rows that match the filter."""


@dataclass(frozen=True, slots=True)
class Query:
    """Filter, page cursor and limit."""

    filter: Filter
    now: datetime
    """By the database's clock."""
    before: Any = None
    limit: int = PAGE
    group: str = ""
    """How the rows are grouped, which a table may read them by."""
    jobs: Sequence[int] | None = None
    """The jobs of the filter `job:`, newest first; None: all."""
    viewer: Actor | None = None
    """The user, for whom identical questions are folded; None: they are not."""


@dataclass(frozen=True)
class Rows(Generic[T]):
    """A page of rows. `next` is the `before` of the next page; None: last page."""

    items: Sequence[T]
    next: Any = None
    scanned: str = ""
    """Where a bounded scan stopped before the page was full."""
    total: int | None = None
    """The number of rows on all pages; None: not known for this filter."""
    group_totals: Mapping[str, int] = field(default_factory=dict)
    """The same by the label of a group, as far as it is known."""
    open: int | None = None
    """How many of all rows need a person, as the tab counts them; None: all, or not known."""
    unknown: str = ""
    """The sentence about a value of the filter that nothing has, if there are no rows."""


DECLARED: Final[list[type[Resource[Any]]]] = []
"""Tables of the modules that are imported."""


class Resource(ABC, Generic[T]):
    """A kind of table row. Each subclass is a table of the dashboard, unless it says otherwise."""

    name: ClassVar[str]
    """Name in commands and in the title."""
    number_key: ClassVar[str] = ""
    """One of `NUMBER_KEYS`, which shows the table; it has a tab then."""
    short_name: ClassVar[str] = ""
    """Label of the tab on narrow screens, if it differs from the name."""
    help: ClassVar[str]
    entity: ClassVar[Entity[Any]]
    """The definition of the rows."""
    hint: ClassVar[str] = ""
    """What to do about an empty table, if it differs from the hint of the entity."""
    columns: tuple[Column[T], ...]
    """Those of the entity that the dashboard shows."""
    note: ClassVar[str] = ""
    """What the title says about the rows."""
    needs_worker: ClassVar[bool] = False
    """Whether the table is empty because no worker is alive."""
    statuses: ClassVar[Sequence[str]] = ()
    """Statuses that `status:` accepts."""
    kinds: ClassVar[Sequence[str]] = ()
    """Kinds that `kind:` accepts; without any it is the same as `status:`."""
    fields: ClassVar[Sequence[str]] = ()
    """Supported filter fields: those that `filter_fields` fills, and `age` for `at`."""
    two_lines_below: ClassVar[int] = 0
    """Width of the table below which its rows have two lines."""
    poll_interval: ClassVar[float] = 10.0
    """Maximum seconds between reads without events."""
    follows_events: ClassVar[bool] = True
    """Whether an event reloads the rows; else only the interval does."""
    groups: ClassVar[Mapping[str, Callable[[Any], str]]] = {}
    """Ways to group the rows: the label of a row, by name."""
    group_order: ClassVar[Mapping[str, Sequence[str]]] = {}
    """Labels in the order of their groups, by the name of the way; others follow."""
    has_jobs: ClassVar[bool] = False
    """Whether each row refers to a job, for the commands and the preview of jobs."""
    has_charts: ClassVar[bool] = False
    """Whether the row under the cursor has `charts` below the table."""
    has_questions: ClassVar[bool] = False
    """Whether the job of a row may have an open question."""
    has_queued_jobs: ClassVar[bool] = False
    """Whether the job of a row may be queued."""
    default_group: ClassVar[str] = ""
    """How the rows are grouped until the user sorts or groups them; rules separate the groups."""

    def __init_subclass__(cls, *, is_table: bool = True) -> None:
        super().__init_subclass__()
        if is_table:
            DECLARED.append(cls)
            cls.columns = cls.entity.columns_of(Surface.DASHBOARD)

    def empty_text(self, *, supervised: bool) -> str:
        """Return the message for an empty table; `supervised`: `draftsman up` starts a worker."""
        hint = self.hint or self.entity.hint
        if supervised and self.needs_worker:
            hint = "the worker is starting"
        empty = f"{capitalized(self.entity.empty)}."
        return f"{empty} {capitalized(hint)}" if hint else empty

    @abstractmethod
    async def read(self, rt: Runtime, query: Query) -> Rows[T]:
        """Read a page, filtered as far as the services support."""

    @abstractmethod
    def key(self, row: T) -> str:
        """Return the stable id of a row, which is also copied."""

    def cells(self, row: T, now: datetime) -> Sequence[Cell]:
        """Return a cell for each column."""
        return [column.cell(row, now) for column in self.columns]

    def charts(self, row: T, width: int, height: int) -> Sequence[Sequence[Cell]]:
        """Return the charts of a row, as rows of cells whose bars have that height."""
        return ()

    def is_first(self, row: T) -> bool:
        """Return whether the row is before the others in the default order."""
        return False

    def filter_fields(self, row: T) -> FilterFields:
        """Return the values that a filter matches."""
        return FilterFields(self.key(row))

    def job(self, row: T) -> int | None:
        """Return the row's job number."""
        return None

    def jobs(self, row: T) -> Sequence[int]:
        """Return the jobs that a command on the row is about."""
        job = self.job(row)
        return () if job is None else (job,)

    def invokers(self, row: T) -> Sequence[str]:
        """Return the invokers of the jobs that the row stands for, if they are known."""
        return ()

    def question(self, row: T) -> tuple[int, int] | None:
        """Return the row's open question as job and ordinal."""
        return None

    def item(self, row: T) -> tuple[str, str | None]:
        """Return the job screen's tab and item that the row opens."""
        return "timeline", None

    def table(self, row: T) -> tuple[str, Filter] | None:
        """Return the table and filter that the row opens, if it has no job."""
        return None

    def counted(self, rows: Sequence[T], plus: str) -> str:
        """Return the number of jobs of the rows for the title, if it differs from theirs.

        `plus` follows the number: `+` if there are more rows.
        """
        return ""

    def page_url(self, row: T) -> str | None:
        """Return the row's web page."""
        return None

    def resolve(self, row_filter: Filter) -> Filter:
        """Expand status aliases of a filter.

        Raises UsageError for a field or status that the table does not have.
        """
        if unsupported := [name for name in row_filter.fields if name not in self.fields]:
            raise UsageError(f"{self.name} has no field {unsupported[0]!r}; {self._allowed_fields}")
        for term in row_filter.columns:
            term.check(self.columns)
        statuses: list[str] = []
        for name in row_filter.statuses:
            if not (matches := matching(name, (*self.statuses, *self.kinds))):
                raise UsageError(self._unknown_status(name))
            statuses += matches
        return replace(row_filter, statuses=tuple(dict.fromkeys(statuses)))

    def _unknown_status(self, name: str) -> str:
        what = "kind" if self.kinds else "status"
        lists = {"kinds": self.kinds, "statuses": self.status_completions}
        if not self.kinds:
            lists = {"available": self.status_completions}
        known = "".join(f"; {key}: {', '.join(names)}" for key, names in lists.items() if names)
        near = did_you_mean(name, (*self.status_completions, *self.kinds))
        return f"unknown {what} {name!r}{near or known}"

    def heading(self, head: str) -> str:
        """Return the words above the column of a head; of another text the text itself."""
        return next((column.heading for column in self.columns if column.head == head), head)

    @property
    def _allowed_fields(self) -> str:
        fields = [f"{name}:" for name in self.fields if name != "age"]
        fields += ["age<", "age>"] * ("age" in self.fields)
        return f"allowed fields: {' '.join(fields)}" if fields else "only text search is supported"

    @property
    def status_completions(self) -> Sequence[str]:
        """Return the completions of `status:`."""
        waiting = len(matching("waiting", self.statuses)) > 1
        return ("waiting", *self.statuses) if waiting else self.statuses

    async def fetch(self, rt: Runtime, query: Query) -> Rows[T]:
        """Return a page of matching rows from a bounded scan."""
        query = replace(query, filter=self.resolve(query.filter))
        if query.filter.job is not None:
            query = replace(query, jobs=await _related_jobs(rt, query.filter.job))
        rows: list[T] = []
        left_out: list[T] = []
        before = query.before
        scanned = ""
        for _ in range(MAX_PAGES):
            page_query = replace(query, before=before, limit=query.limit - len(rows))
            page_rows = await self.read(rt, page_query)
            for row in page_rows.items:
                (rows if self._matches(row, query) else left_out).append(row)
            before = page_rows.next
            scanned = page_rows.scanned
            if before is None or len(rows) >= query.limit:
                is_empty = not rows and query.before is None and not scanned
                unknown = await self._unknown_value(rt, query, left_out) if is_empty else ""
                return replace(page_rows, items=rows, unknown=unknown)
        return Rows(
            rows, before, scanned or "searched the newest rows; scroll past the end to continue"
        )

    async def _unknown_value(self, rt: Runtime, query: Query, left_out: Sequence[T]) -> str:
        """Return the sentence about a value of the filter that nothing has; "" for none."""
        seen: dict[str, set[str]] = {}
        heads = [column.head.casefold() for column in self.columns]
        for row in left_out if query.filter else ():
            for name, values in self.filter_fields(row).values.items():
                seen.setdefault(name, set()).update(values)
            for head, cell in zip(heads, self.cells(row, query.now), strict=True):
                seen.setdefault(head, set()).add(cell.text)
        sentence = capitalized(await unknown_value(rt, query.filter.values, seen))
        return f"{sentence}." if sentence and not sentence.endswith("?") else sentence

    def _matches(self, row: T, query: Query) -> bool:
        if not query.filter:
            return True
        fields = self.filter_fields(row)
        if query.filter.searches:
            fields = replace(fields, column_text=self._column_text(row, fields.status, query.now))
        return query.filter.matches(fields, query.now) and self._has_columns(row, query)

    def _has_columns(self, row: T, query: Query) -> bool:
        if not query.filter.columns:
            return True
        texts = [cell.text for cell in self.cells(row, query.now)]
        return all(
            term.matches(row, self.columns, texts, query.now) for term in query.filter.columns
        )

    def _column_text(self, row: T, status: str, now: datetime) -> str:
        """Return the text of all columns, visible or not, and the aliases of the status."""
        texts = (cell.text for cell in self.cells(row, now))
        return " ".join(filter(None, (*texts, words(status))))


class ListedResource(Resource[T], is_table=False):
    """A table that is the listing of its entity, unless its subclass says otherwise."""

    entity: ClassVar[ListedEntity[Any]]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        listing = cls.entity.listing
        cls.name = getattr(cls, "name", listing.name)
        cls.help = getattr(cls, "help", listing.help.partition("\n")[0])

    async def read(self, rt: Runtime, query: Query) -> Rows[T]:
        """Read the listing."""
        return Rows(await self.entity.listing.read(rt, query.limit))

    def key(self, row: T) -> str:
        """Return the key of the listing."""
        return self.entity.listing.key(row)

    def job(self, row: T) -> int | None:
        """Return the number of the job that the row opens in the listing."""
        return job_number(self.entity.listing.opens(row).partition("/")[0])


def key_order(number_key: str, name: str) -> tuple[int, str]:
    """Return the sort key of a table or a tab: by its key, those without one by name."""
    return (NUMBER_KEYS.find(number_key) if number_key else len(NUMBER_KEYS)), name


def page(rows: Sequence[T], limit: int, cursor: Callable[[T], Any]) -> Rows[T]:
    """Return a page whose cursor is taken from its last row, if the page is full."""
    return Rows(rows, cursor(rows[-1]) if len(rows) >= limit > 0 else None)


async def _related_jobs(rt: Runtime, name: str) -> Sequence[int]:
    """Return the job, its tree, its parents and its retries; raises NotFound and UsageError."""
    number = await rt.read_model.resolve(parse_job(name))
    tree = await rt.workflows.tree(number)
    numbers = {job.number for job in tree.jobs} | {parent.number for parent in tree.parents}
    numbers |= {link.number for link in await rt.read_model.chain(number)}
    if tree.spawned_by is not None:
        numbers.add(tree.spawned_by)
    return sorted(numbers, reverse=True)
