"""Names that people give a status, beside its own: what screens show, and common synonyms. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

NEAR: Final[dict[str, tuple[str, ...]]] = {
    "waiting_for_input": ("asks", "asking", "waiting", "question", "input"),
    "waiting_for_approval": ("gate", "asking", "waiting", "approval"),
    "input": ("question", "asks"),
    "approval": ("gate",),
    "dead_letter": ("dead",),
    "canceled": ("cancelled",),
    "completed": ("done", "succeeded"),
}
"""By the status of a job, or the kind of a question."""
SHORTEST: Final = 3
"""Letters from which on the beginning of a status names it."""


def matching(name: str, statuses: Sequence[str]) -> tuple[str, ...]:
    """Return the statuses that a name stands for: its own, a near name's, or what it begins."""
    if name in statuses:
        return (name,)
    near = tuple(status for status in statuses if name in NEAR.get(status, ()))
    if near or len(name) < SHORTEST:
        return near
    begun = tuple(status for status in statuses if status.startswith(name))
    return begun if len(begun) == 1 else ()


def words(status: str) -> str:
    """Return every way to write a status, for the search of words."""
    written = (status.replace("_", sign) for sign in "_ -")
    return " ".join(dict.fromkeys((*written, *NEAR.get(status, ()))))
