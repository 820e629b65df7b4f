"""Columns that several entities have."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

from draftsman_tui.entities import cells
from draftsman_tui.entities.entity import Column

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
    )


def by(name: Callable[[T], str], *, from_width: int = 110) -> Column[T]:
    """Return the column of the person or account; the name is without the kind of account."""
    return Column(
        "BY",
        12,
        help="Who created or did it.",
        cell=lambda row, _: cells.text(name(row)),
        most=24,
        from_width=from_width,
        order=name,
    )


def repo(name: Callable[[T], str | None], *, width: int = 14, **layout: Any) -> Column[T]:
    """Return the column of the repository."""
    return Column(
        "REPO",
        width,
        help="The repository.",
        cell=lambda row, _: cells.text(name(row)),
        cut=True,
        order=lambda row: (name(row) or "").casefold(),
        **layout,
    )
