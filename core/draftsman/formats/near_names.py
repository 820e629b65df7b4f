"""Near names, for a name that is not known."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def near_names(name: str, names: Iterable[str], most: int = 3) -> list[str]:
    """Return the names that are most like this, in any case; the nearest first."""
    by_folded: dict[str, str] = {}
    for known in names:
        by_folded.setdefault(known.casefold(), known)
    return [by_folded[near] for near in get_close_matches(name.casefold(), by_folded, most)]


def did_you_mean(name: str, names: Iterable[str], most: int = 3) -> str:
    """Return the end of a sentence, `; did you mean A or B?`, or "" without a near name."""
    near = near_names(name, names, most)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def near_or_all(name: str, names: Iterable[str], lead: str, most: int = 3) -> str:
    """Return the end of a sentence about an unknown name: a near name, else all after `lead`."""
    known = [*names]
    return did_you_mean(name, known, most) or f"; {lead}: {', '.join(known) or 'none'}"
