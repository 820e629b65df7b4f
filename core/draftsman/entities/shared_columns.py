"""Columns that several entities have."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

from draftsman.entities import cells
from draftsman.entities.cells import Cell
from draftsman.entities.entity import Column
from draftsman.entities.terms import Measure
from draftsman.formats import times

T = TypeVar("T")


def age(at: Callable[[T], datetime | None]) -> Column[T]:
    """Return the column of the time since the creation."""
    return Column(
        "AGE",
        6,
        help="Time since it was created.",
        cell=lambda row, now: cells.age(at(row), now),
        right=True,
        order=at,
        measure=Measure.TIME,
    )


def by(name: Callable[[T], str], *, from_width: int = 110) -> Column[T]:
    """Return the column of the person or account; the name is without the kind of account."""
    return text("BY", 12, help="Who created or did it.", of=name, most=24, from_width=from_width)


def repo(name: Callable[[T], str | None], *, width: int = 14, **layout: Any) -> Column[T]:
    """Return the column of the repository."""
    return text("REPO", width, help="The repository.", of=name, cut=True, **layout)


def text(
    head: str,
    width: int = 0,
    *,
    help: str,
    of: Callable[[T], str | None],
    role: str = "",
    **layout: Any,
) -> Column[T]:
    """Return a column of a text, sorted by it."""
    return Column(
        head,
        width,
        help=help,
        cell=lambda row, _: cells.text(of(row), role),
        order=lambda row: (of(row) or "").casefold(),
        **layout,
    )


def number(
    head: str, width: int = 0, *, help: str, of: Callable[[T], int], **layout: Any
) -> Column[T]:
    """Return a column of a number."""
    return Column(
        head,
        width,
        help=help,
        cell=lambda row, _: Cell(f"{of(row):,}"),
        right=True,
        order=of,
        measure=Measure.NUMBER,
        **layout,
    )


def status(
    cell: Callable[[T], Cell],
    width: int,
    *,
    order: Callable[[T], Any] | None = None,
    **layout: Any,
) -> Column[T]:
    """Return the column of the status, sorted by its text unless there is an order."""
    return Column(
        "STATUS",
        width,
        help="Its status.",
        cell=lambda row, _: cell(row),
        order=order or (lambda row: cell(row).text),
        **layout,
    )


def when(at: Callable[[T], datetime]) -> Column[T]:
    """Return the column of the time of a change."""
    return Column(
        "WHEN",
        help="When it was changed.",
        cell=lambda row, now: Cell(times.ago(at(row), now)),
        order=at,
        measure=Measure.TIME,
    )
