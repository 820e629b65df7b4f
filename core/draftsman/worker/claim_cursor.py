"""Where the next claim of a loop begins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from draftsman.jobs.runs.run import ClaimedJob

MAX_INTERVAL: Final = 1.0
"""Seconds after which a claim begins at the start of the queues, at the latest."""
SHARE: Final = 0.05
"""The part of the time that claims from the start may take, before that."""


class ClaimCursor:
    """The job after which a claim looks for the next, while claims find all that they want.

    A claim from the start passes the index entries of all jobs that were claimed since the last
    vacuum, or since the oldest snapshot began; one from the cursor passes those of other workers
    since the last. It leaves jobs that have come before the cursor meanwhile, such as urgent or
    resumed jobs, and jobs that others had locked. Claims therefore begin at the start again when
    one found fewer jobs than it wanted, and as often as their `SHARE` of the time permits: every
    few milliseconds, unless a queue is deep.
    """

    def __init__(self) -> None:
        self.fell_short = False
        """Whether the last claim began at the cursor and found too few jobs."""
        self._after: int | None = None
        self._valid_until = 0.0
        self._began_at = 0.0

    def start(self, now: float) -> int | None:
        """Begin a claim; return the number of the job after which it looks, None: at the start."""
        self.fell_short = False
        self._began_at = now
        if now >= self._valid_until:
            self._after = None
        return self._after

    def move(self, claimed: Sequence[ClaimedJob], wanted: int, now: float) -> None:
        """Set the cursor behind the jobs of the claim that began last and `wanted` so many."""
        if len(claimed) < wanted:
            self.fell_short = self._after is not None
            self._after = None
            return
        if self._after is None:
            took = now - self._began_at
            self._valid_until = now + min(MAX_INTERVAL, took / SHARE)
        found = [job.number for job in claimed if job.place is not None]
        self._after = found[-1] if found else None
