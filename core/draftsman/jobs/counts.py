"""The words of counts of jobs: each has the same meaning on every surface. Pure.

`failures` are those of `ReadModel.open_failures`, and `closed` are the other finished jobs. Of
questions, `questions for you` and `open questions` are `QuestionCounts`; identical questions of
several jobs count once. No count is larger than `COUNT_LIMIT`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from draftsman.jobs.job import TERMINAL, WAITING, Status
from draftsman.jobs.status_display import STATUSES

PENDING: Final = frozenset(
    {Status.SCHEDULED, Status.QUEUED, Status.CLAIMED, Status.RESUMED, Status.RETRYING}
)
"""Statuses of jobs that wait for draftsman."""
WORDS: Final[Mapping[str, frozenset[Status]]] = {
    **{display.word: frozenset({status}) for status, display in STATUSES.items()},
    "jobs": frozenset(Status),
    "waiting": WAITING,
    "needs a person": WAITING,
    "waits": PENDING,
    "not finished": frozenset(Status) - TERMINAL,
    "finished": TERMINAL,
}
"""The statuses whose jobs a word counts."""


def number_of(word: str, counts: Mapping[str, int]) -> int:
    """Return the number of jobs of a word, from the numbers by status."""
    return sum(counts.get(status, 0) for status in WORDS[word])
