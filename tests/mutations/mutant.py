"""A mutant: a file of the claim path with a single change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Mutant:
    """A change of a query, of a function of the database, or of a function in Python.

    `unit` is the name of the query or the qualified name of the function.
    """

    path: str
    unit: str
    change: str
    """What is changed, which together with `unit` is the name of the mutant."""
    start: int
    """Offset of the changed text in the file, in characters."""
    end: int
    text: str
    """The text that replaces it."""

    @property
    def name(self) -> str:
        """Return the name: it does not depend on the lines above."""
        return f"{self.unit}: {self.change}"

    @property
    def line(self) -> int:
        """Return the line of the change."""
        return (ROOT / self.path).read_text("utf-8").count("\n", 0, self.start) + 1

    def apply(self, source: str) -> str:
        """Return the changed text of the file."""
        return source[: self.start] + self.text + source[self.end :]


def numbered(mutants: Iterable[Mutant]) -> list[Mutant]:
    """Number mutants of the same name in the order of the file, and remove equal ones."""
    distinct = {(m.start, m.end, m.text): m for m in mutants}
    seen: Counter[str] = Counter()
    result = []
    for mutant in sorted(distinct.values(), key=lambda m: (m.start, m.end, m.text)):
        seen[mutant.name] += 1
        count = seen[mutant.name]
        result.append(
            mutant if count == 1 else replace(mutant, change=f"{mutant.change} ({count})")
        )
    return result


def shortened(text: str) -> str:
    """Return the text on one line, at most 70 characters."""
    line = " ".join(text.split())
    return line if len(line) <= 70 else f"{line[:40]} … {line[-27:]}"
