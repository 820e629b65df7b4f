"""Near names, for a name that is not known."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import SequenceMatcher, get_close_matches
from typing import Final

MARGIN: Final = 0.1
"""How much less similar than the nearest name another near name may be."""


def near_names(name: str, names: Iterable[str], most: int = 3) -> list[str]:
    """Return the names that are most like this, in any case; the nearest first, and no noise."""
    by_folded: dict[str, str] = {}
    for known in names:
        by_folded.setdefault(known.casefold(), known)
    typed = SequenceMatcher(b=name.casefold())
    similar: dict[str, float] = {}
    for near in get_close_matches(name.casefold(), by_folded, most):
        typed.set_seq1(near)
        similar[near] = typed.ratio()
    return [by_folded[near] for near in similar if similar[near] >= max(similar.values()) - MARGIN]


def did_you_mean(name: str, names: Iterable[str], most: int = 3) -> str:
    """Return the end of a sentence, `; did you mean A or B?`, or "" without a near name."""
    near = near_names(name, names, most)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def near_or_all(name: str, names: Iterable[str], lead: str, most: int = 3) -> str:
    """Return the end of a sentence about an unknown name: a near name, else all after `lead`."""
    known = [*names]
    return did_you_mean(name, known, most) or f"; {lead}: {', '.join(known) or 'none'}"
