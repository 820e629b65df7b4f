"""Values of a result that people see as what they are: texts, tables, links and pictures.

A job returns one of them, or an object that has some as its fields. They are stored as JSON with
the field `shown`, and every front end shows them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from draftsman.formats.json_data import as_data
from draftsman.text import is_link

Cell = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Markdown:
    """A text in Markdown: paragraphs, headings, lists, code, `**strong**` words and links."""

    text: str
    shown: Literal["markdown"] = "markdown"

    def __post_init__(self) -> None:
        _check(self.text, str, "the text of Markdown")


@dataclass(frozen=True, slots=True)
class Table:
    """Rows with a cell for each column."""

    columns: list[str]
    rows: list[list[Cell]]
    shown: Literal["table"] = "table"

    def __post_init__(self) -> None:
        for name in _check(self.columns, list, "the columns of a Table"):
            _check(name, str, "a column of a Table")
        for row in _check(self.rows, list, "the rows of a Table"):
            if len(_check(row, list, "a row of a Table")) != len(self.columns):
                raise ValueError(
                    f"a Table of {len(self.columns)} columns has a row of {len(row)} cells: {row}"
                )
            for cell in row:
                _check(cell, str | int | float | None, "a cell of a Table")

    @classmethod
    def of(cls, records: Iterable[Mapping[str, Cell]]) -> Table:
        """Return the table of some objects, with a column for each name in them."""
        listed = list(records)
        columns = list(dict.fromkeys(name for record in listed for name in record))
        return cls(columns, [[record.get(name) for name in columns] for record in listed])


@dataclass(frozen=True, slots=True)
class Link:
    """The address of a page, and what is there."""

    url: str
    text: str = ""
    shown: Literal["link"] = "link"

    def __post_init__(self) -> None:
        _check(self.text, str, "the text of a Link")
        if not is_link(_check(self.url, str, "the url of a Link")):
            raise ValueError(f"the url of a Link begins with https:// or http://, not {self.url!r}")


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture, and what it shows: an artifact of the job by its name, or an address."""

    source: str
    text: str = ""
    shown: Literal["picture"] = "picture"

    def __post_init__(self) -> None:
        _check(self.text, str, "the text of a Picture")
        if not _check(self.source, str, "the source of a Picture").strip():
            raise ValueError("the source of a Picture is the name of an artifact, or an address")


Shown = Markdown | Table | Link | Picture
_KINDS: Final[Mapping[str, type[Shown]]] = {
    "markdown": Markdown,
    "table": Table,
    "link": Link,
    "picture": Picture,
}


def shown_values(result: Mapping[str, Any]) -> dict[str, Shown]:
    """Return the values of a stored result that are shown as what they are, by their fields.

    Texts come first, then tables, links and pictures: the database does not keep the order of
    fields. The field of a result that is such a value itself is "". Data that is only similar is
    none.
    """
    if (whole := _parsed(result)) is not None:
        return {"": whole}
    values = ((name, _parsed(value)) for name, value in result.items())
    shown = [(name, value) for name, value in values if value is not None]
    kinds = [*_KINDS.values()]
    return dict(sorted(shown, key=lambda item: kinds.index(type(item[1]))))


def stored_values(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result whose values that are shown are JSON."""
    return {
        name: as_data(value) if isinstance(value, Shown) else value
        for name, value in result.items()
    }


def _parsed(value: object) -> Shown | None:
    kind = value.get("shown") if isinstance(value, Mapping) else None
    if not isinstance(value, Mapping) or not isinstance(kind, str) or kind not in _KINDS:
        return None
    try:
        return _KINDS[kind](**value)
    except (TypeError, ValueError):
        return None


def _check(value: Any, kind: Any, what: str) -> Any:
    if not isinstance(value, kind):
        raise ValueError(f"{what} cannot be {value!r:.100}")
    return value
