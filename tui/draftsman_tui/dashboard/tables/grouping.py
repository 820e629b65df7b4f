"""Groups of table rows under heads, which fold.

Does not import Textual.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from draftsman.formats.amounts import count_text

NONE = "(none)"
"""Label of rows without a value."""
_KEY: Final = "group:"


@dataclass(frozen=True, slots=True)
class Folds:
    """Which groups are folded, by label: none of them, or with `all` each, but for the `others`.

    A group that appears later is folded with all groups.
    """

    all: bool = False
    others: frozenset[str] = frozenset()

    def __contains__(self, label: object) -> bool:
        return (label in self.others) is not self.all

    def __bool__(self) -> bool:
        return self.all or bool(self.others)

    def toggle(self, label: str) -> Folds:
        """Fold a group, or unfold it."""
        return Folds(self.all, self.others ^ {label})


NO_FOLDS: Final = Folds()


@dataclass(frozen=True, slots=True)
class GroupHead:
    """Head of the rows with the same label; a folded head stands for its rows."""

    label: str
    rows: tuple[Any, ...]
    folded: bool
    is_rule: bool = False
    """Whether it only separates the rows: the cursor passes it."""
    total: int | None = None
    """The number of all rows of the group; None: that of its loaded rows."""
    has_more: bool = False
    """Whether the table has rows that are not loaded."""

    @property
    def key(self) -> str:
        """Key among the rows of the table, in which no other row starts with `group:`."""
        return f"{_KEY}{self.label}"

    @staticmethod
    def is_key(key: str) -> bool:
        """Return whether a key of a table is that of a head."""
        return key.startswith(_KEY)

    @property
    def count(self) -> str:
        """The number of rows; `12+` if only 12 are loaded and there may be more."""
        return total_text(self.total, len(self.rows), has_more=self.has_more)

    @property
    def text(self) -> str:
        """Text of the line."""
        return f"{'▸' if self.folded else '▾'} {self.label} · {self.count}"


def total_text(total: int | None, loaded: int, *, has_more: bool) -> str:
    """Return the number of all rows, or of the loaded rows with `+` if there are more."""
    if total is None or total < loaded:  # rows were added after they were counted
        return f"{loaded:,}{'+' * has_more}"
    return count_text(total)


def grouped(
    rows: Sequence[Any],
    label_of: Callable[[Any], str],
    folded: Container[str],
    order: Sequence[str] = (),
    *,
    rules: bool = False,
    totals: Mapping[str, int] = MappingProxyType({}),
    has_more: bool = False,
) -> list[Any]:
    """Return heads and, below those that are not folded, their rows.

    Groups are in the given order of their labels, then in the order of their first rows, so that
    the most urgent group stays first. With `rules`, the heads of several groups are rules, and a
    single group has none. `totals` are the numbers of all rows by label, as far as they are known.
    """
    groups: dict[str, list[Any]] = {}
    for row in rows:
        groups.setdefault(label_of(row) or NONE, []).append(row)
    lines: list[Any] = []
    labels = [label for label in order if label in groups]
    if rules and len(groups) < 2:
        return list(rows)
    for label in dict.fromkeys([*labels, *groups]):
        members = groups[label]
        total = totals.get(label)
        lines.append(GroupHead(label, tuple(members), label in folded, rules, total, has_more))
        lines += () if label in folded else members
    return lines


def without_heads(rows: Iterable[Any]) -> Iterator[Any]:
    """Yield the rows of a table, those of folded heads included."""
    for row in rows:
        if not isinstance(row, GroupHead):
            yield row
        elif row.folded:
            yield from row.rows
