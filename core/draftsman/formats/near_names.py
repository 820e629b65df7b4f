"""Near names, for a name that is not known."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import SequenceMatcher, get_close_matches
from typing import Final

NEAR: Final = 0.6
"""How alike a name has to be, of 1."""
MARGIN: Final = 0.1
"""How much less alike than the nearest name another one may be."""
CANDIDATES: Final = 20


def near_names(name: str, names: Iterable[str], most: int = 3) -> list[str]:
    """Return the names that are most like this, in any case; the nearest first.

    None of them is far from the nearest. The same words before a colon make no name near.
    """
    by_folded: dict[str, str] = {}
    for known in names:
        by_folded.setdefault(known.casefold(), known)
    typed = name.casefold()
    near = get_close_matches(typed, by_folded, CANDIDATES, NEAR)
    likeness = {known: _likeness(typed, known) for known in near}
    best = max(likeness.values(), default=0.0)
    ordered = sorted(near, key=lambda known: -likeness[known])
    floor = max(NEAR, best - MARGIN)
    return [by_folded[known] for known in ordered if likeness[known] >= floor][:most]


def _likeness(typed: str, known: str) -> float:
    """Return how alike two names are; of two in the same namespace, what follows it."""
    namespace, colon, rest = typed.rpartition(":")
    if colon and rest and known.startswith(namespace + colon):
        typed, known = rest, known[len(namespace) + 1 :]
    return SequenceMatcher(None, known, typed).ratio()


def did_you_mean(name: str, names: Iterable[str], most: int = 3) -> str:
    """Return the end of a sentence, `; did you mean A or B?`, or "" without a near name."""
    near = near_names(name, names, most)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def near_or_all(name: str, names: Iterable[str], lead: str, most: int = 3) -> str:
    """Return the end of a sentence about an unknown name: a near name, else all after `lead`."""
    known = [*names]
    return did_you_mean(name, known, most) or f"; {lead}: {', '.join(known) or 'none'}"
