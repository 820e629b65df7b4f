"""Lists, made from their definitions; all text is escaped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from markupsafe import Markup

from draftsman.deliveries.documents.html import inert, time_html
from draftsman.entities.entity import Column, Entity, ListedEntity, Surface
from draftsman.entities.registry import listed_entities
from draftsman.errors import NotFound, UsageError
from draftsman.formats.amounts import COUNT_LIMIT, counted
from draftsman_bots.web.pages import page
from draftsman_bots.web.problems import error_text
from draftsman_bots.web.section_html import ROLES, link_names, name_path

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from draftsman_bots.web.context import WebContext

PAGE_SIZE: Final = 200
"""Rows of a page of a list."""
MAX_ROWS: Final = 2000
"""First rows of a list, which its pages show, and conditions and sorting cover."""
MAX_FILTER: Final = 200
"""Characters of a filter."""
OWN_PAGES: Final = {"inbox": "/", "jobs": "/jobs"}
"""The pages of lists that have one of their own."""
GROUPS: Final[Mapping[str, Sequence[str]]] = {
    "Work": ("inbox", "jobs", "groups", "events", "deliveries"),
    "Requests": ("templates", "types", "schedules", "repos", "boards"),
    "Operation": ("workers", "queues", "limits", "budgets", "rules"),
}
"""Lists by what they are about; the overview has others below."""
UNFILTERED: Final = "The list below is not filtered by it."
WIDE: Final = 110
"""Width of a terminal from which a column is shown on large screens only."""


async def overview(context: WebContext, request: Request) -> Response:
    """Show which lists there are."""
    visit = await context.visit(request)
    known = listed_entities()
    grouped = {name for names in GROUPS.values() for name in names}
    groups = {**GROUPS, "More": [name for name in known if name not in grouped]}
    shown = {
        title: [
            (name, OWN_PAGES.get(name, f"/lists/{name}"), _sentence(known[name].listing.help))
            for name in names
            if name in known
        ]
        for title, names in groups.items()
    }
    return page("lists", visit, active="lists", groups=shown)


async def show(context: WebContext, request: Request) -> Response:
    """Show a list, by its name, sorted and filtered by its columns."""
    visit = await context.visit(request)
    name = request.path_params["name"]
    if (entity := listed_entities().get(name)) is None:
        raise NotFound(f"there is no list {name[:40]}")
    sort = request.query_params.get("sort", "")[:MAX_FILTER]
    where = request.query_params.get("where", "").strip()[:MAX_FILTER]
    rt = context.rt_of(visit)
    most = COUNT_LIMIT if sort or where else MAX_ROWS
    rows = await entity.listing.read(rt, most)
    now = await rt.checkpoints.now()
    problem = ""
    try:
        shown = entity.select(rows, now, sort=sort, search=where)
    except UsageError as error:
        problem = f"{error_text(error)} {UNFILTERED}"
        shown = rows
    page_of = _ListPage.of(len(shown), request.query_params.get("page", ""))
    kept = {name: text for name, text in {"where": where, "sort": sort}.items() if text}
    return page(
        "list",
        visit,
        live=True,
        active="lists",
        list_name=name,
        help=_sentence(entity.listing.help),
        table=table(
            entity,
            shown[page_of.start : page_of.end],
            now,
            sort=sort,
            kept={"where": where} if where else {},
        ),
        pages={
            text: urlencode({**kept, "page": number}) for text, number in page_of.others.items()
        },
        shown=page_of.text(has_more=len(shown) >= most),
        empty=entity.empty,
        where=where,
        sort=sort,
        sorts=_sorts(entity),
        examples=examples(entity, rows, now),
        columns=", ".join(column.head.lower() for column in filtered(entity)),
        problem=problem,
        searched=f"{most:,}" if len(rows) >= most else "",
    )


def filtered(entity: Entity[Any]) -> list[Column[Any]]:
    """Return the columns that conditions can name."""
    return [column for column in entity.columns if " " not in column.head]


def examples(entity: Entity[Any], rows: Sequence[Any], now: datetime) -> str:
    """Return a word and conditions on columns of this entity, with a value of its first row."""
    for_text = number = ""
    for column in filtered(entity):
        text = column.cell(rows[0], now).text if rows else ""
        name = column.head.lower()
        if column.right and column.order is not None:
            is_time = rows and isinstance(column.order(rows[0]), datetime | timedelta)
            number = number or (f"{name}>1h" if is_time else f"{name}>1")
        elif text.isalpha():
            for_text = for_text or f"{name}:{text}"
    return ", ".join(filter(None, ("a word", for_text, number)))


def _sorts(entity: Entity[Any]) -> list[tuple[str, str]]:
    """Return the orders of a list with their texts."""
    orders = [("", "As listed")]
    for column in entity.columns_of(Surface.PAGES):
        head, heading = column.head.lower(), column.heading.capitalize()
        orders.append((head, f"{heading} ▴"))
        orders.append((f"-{head}", f"{heading} ▾"))
    return orders


@dataclass(frozen=True, slots=True)
class _ListPage:
    """A page of so many rows, counted from 1."""

    total: int
    number: int

    @classmethod
    def of(cls, total: int, text: str) -> _ListPage:
        """Return the page that a query names, or else the nearest one."""
        number = int(text) if text.isascii() and text.isdigit() and len(text) < 9 else 1
        return cls(total, max(1, min(number, -(-total // PAGE_SIZE))))

    @property
    def start(self) -> int:
        """How many rows are before it."""
        return (self.number - 1) * PAGE_SIZE

    @property
    def end(self) -> int:
        """How many rows are before its end."""
        return min(self.total, self.start + PAGE_SIZE)

    @property
    def others(self) -> dict[str, int]:
        """The numbers of the pages before and after it."""
        before = {"Previous": self.number - 1} if self.start else {}
        return before | ({"Next": self.number + 1} if self.end < self.total else {})

    def text(self, *, has_more: bool) -> str:
        """Return which rows it has: `201 to 400 of 1,234 rows`; `has_more`: of a longer list."""
        total = f"{self.total:,}+ rows" if has_more else counted(self.total, "row")
        if self.total <= PAGE_SIZE:
            return total
        return f"{self.start + 1:,} to {self.end:,} of {total}"


def table(
    entity: Entity[Any],
    rows: Sequence[Any],
    now: datetime,
    *,
    sort: str | None = None,
    kept: dict[str, str] | None = None,
) -> Markup:
    """Return rows as a table; empty without rows.

    With `sort`, the heads are links that sort; `kept` are the other parameters of the page.
    """
    if not rows:
        return Markup()
    columns = entity.requested(Surface.PAGES, sort or "", ())
    texts = [[column.cell(row, now).text for row in rows] for column in columns]
    shown = [column for column, cells in zip(columns, texts, strict=True) if any(cells)]
    heads = "".join(_head(column, sort, kept or {}) for column in shown)
    body = "\n".join(_row(entity, shown, row, now) for row in rows)
    return Markup(  # noqa: S704 - of escaped texts
        f'<table class="rows"><thead><tr>{heads}</tr></thead>\n<tbody>\n{body}</tbody></table>'
    )


def _head(column: Column[Any], sort: str | None, kept: dict[str, str]) -> str:
    text = inert(column.heading.capitalize())
    attributes = f'scope="col" class="{_layout(column)}" title="{inert(column.help)}"'
    if sort is not None:
        name = column.head.lower()
        order = f"-{name}" if sort == name else name
        text = f'<a href="?{inert(urlencode({**kept, "sort": order}))}">{text}</a>'
        if sort.removeprefix("-") == name:
            direction = "descending" if sort.startswith("-") else "ascending"
            attributes += f' aria-sort="{direction}"'
    return f"<th {attributes}>{text}</th>"


def _row(entity: Entity[Any], columns: Sequence[Column[Any]], row: Any, now: datetime) -> str:
    key = entity.listing.key(row) if isinstance(entity, ListedEntity) else ""
    id = f' id="row-{inert("-".join(key.split()))}"' if key else ""
    return f"<tr{id}>{''.join(_cells(entity, columns, row, now))}</tr>"


def _cells(
    entity: Entity[Any], columns: Sequence[Column[Any]], row: Any, now: datetime
) -> Iterator[str]:
    """Yield the cells; one opens what the row is about, and each name in the others its own."""
    own = path = ""
    if isinstance(entity, ListedEntity):
        jobs = urlencode(entity.listing.jobs(row))
        own = entity.listing.key(row) if jobs else entity.listing.opens(row)
        path = f"/jobs?{jobs}" if jobs else name_path(own)
    is_opened = not path
    for column in columns:
        cell = column.cell(row, now)
        is_open = not is_opened and cell.text == own  # an equal text after it is something else
        is_opened |= is_open
        text = inert(cell.full or cell.text)
        if cell.when is not None:
            text = time_html(cell.when, "" if cell.is_clock else cell.text)
        elif not is_open:
            text = link_names(text)
        if cell.role and cell.text:
            text = f'<span class="{ROLES[cell.role]}">{text}</span>'
        if column.cut or not column.width:
            text = f'<span class="cut">{text}</span>'
        if is_open:
            text = f'<a class="open" href="{inert(path)}">{text}</a>'
        head = inert(column.heading.capitalize())
        yield f'<td class="{_layout(column)}" data-head="{head}">{text if cell.text else ""}</td>'


def _layout(column: Column[Any]) -> str:
    """Return the classes of a column: where numbers end, and on which screens it is shown."""
    names = ["right"] * column.right + ["wide"] * (column.from_width > WIDE)
    return " ".join([*names, "long"] if column.cut or not column.width else names)


def _sentence(help: str) -> str:
    return help.partition("\n")[0]
