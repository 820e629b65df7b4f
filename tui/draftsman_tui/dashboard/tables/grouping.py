"""Groups of table rows under heads, which fold.

Does not import Textual.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

NONE = "(none)"
"""Label of rows without a value."""


@dataclass(frozen=True, slots=True)
class GroupHead:
    """Head of the rows with the same label; a folded head stands for its rows."""

    label: str
    rows: tuple[Any, ...]
    folded: bool
    is_rule: bool = False
    """Whether it only separates the rows: the cursor passes it."""

    @property
    def key(self) -> str:
        """Key among the rows of the table, in which no other row starts with `group:`."""
        return f"group:{self.label}"

    @property
    def text(self) -> str:
        """Text of the line."""
        return f"{'▸' if self.folded else '▾'} {self.label} · {len(self.rows):,}"


def grouped(
    rows: Sequence[Any],
    label_of: Callable[[Any], str],
    folded: Collection[str],
    order: Sequence[str] = (),
    *,
    rules: bool = False,
) -> list[Any]:
    """Return heads and, below those that are not folded, their rows.

    Groups are in the given order of their labels, then in the order of their first rows, so that
    the most urgent group stays first. With `rules`, the heads of several groups are rules, and a
    single group has none.
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
        lines.append(GroupHead(label, tuple(members), label in folded, rules))
        lines += () if label in folded else members
    return lines


def without_heads(rows: Iterable[Any]) -> Iterator[Any]:
    """Yield the rows of a table, those of folded heads included."""
    for row in rows:
        if not isinstance(row, GroupHead):
            yield row
        elif row.folded:
            yield from row.rows
