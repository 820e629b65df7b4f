"""Status aliases in filters: labels of the screens and common synonyms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

ALIASES: Final[dict[str, tuple[str, ...]]] = {
    "waiting_for_input": ("asks", "asking", "waiting", "question", "input"),
    "waiting_for_approval": ("gate", "asking", "waiting", "approval"),
    "input": ("question", "asks"),
    "approval": ("gate",),
    "dead_letter": ("dead",),
    "canceled": ("cancelled",),
    "completed": ("done", "succeeded"),
}
"""By job status or question kind."""
MIN_PREFIX: Final = 3
"""Length from which a unique prefix matches a status."""


def matching(name: str, statuses: Sequence[str]) -> tuple[str, ...]:
    """Return the statuses that match a name exactly, by alias or by unique prefix."""
    if name in statuses:
        return (name,)
    aliased = tuple(status for status in statuses if name in ALIASES.get(status, ()))
    if aliased or len(name) < MIN_PREFIX:
        return aliased
    prefixed = tuple(status for status in statuses if status.startswith(name))
    return prefixed if len(prefixed) == 1 else ()


def words(status: str) -> str:
    """Return the spellings and aliases of a status, for text search."""
    spellings = (status.replace("_", sign) for sign in "_ -")
    return " ".join(dict.fromkeys((*spellings, *ALIASES.get(status, ()))))
