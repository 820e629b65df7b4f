"""Workers, and the sweeps of their leader."""

from __future__ import annotations

from typing import Final, Self

from pydantic import Field, model_validator

from draftsman.settings.section import Section

STOP_SHARE: Final = 0.1
"""Part of a lease before whose end a run is stopped."""
STOP_MARGIN: Final = 10.0
"""Maximum seconds before the end of a lease at which a run is stopped."""


class WorkerSettings(Section):
    """Workers, which run jobs."""

    slots: int = Field(10, ge=1, le=1000)
    """Concurrent runs."""
    threads: int | None = Field(None, ge=1, le=1000, examples=[4])
    """Concurrent threads of functions that are not async; others wait for one in their slots, and
    batches count as one. Unset: as many as slots."""
    prefetch: int = Field(0, ge=0, le=1000)
    """Jobs claimed ahead of a free slot."""
    queues: tuple[str, ...] = ("default",)
    """Queues to claim from."""
    poll: float = Field(1.0, gt=0, le=60)
    """Poll interval in seconds, used when no notification arrives."""
    heartbeat: float = Field(30, gt=0, le=300)
    """Seconds between heartbeats; less than half of the lease."""
    lease: float = Field(300, gt=0, le=3600)
    """Seconds without a heartbeat after which a run is lost."""
    drain: float = Field(45, ge=0, le=3600)
    """Seconds that a shutdown waits for runs to finish before it aborts them."""
    abort: float = Field(10, ge=0, le=600)
    """Seconds that aborted runs get to save a checkpoint before they are killed."""

    @model_validator(mode="after")
    def _check_heartbeat(self) -> Self:
        if self.heartbeat * 2 >= self.lease:
            raise ValueError("heartbeat must be less than half of lease")
        return self

    @property
    def stop_after(self) -> float:
        """Seconds after its last confirmed heartbeat at which a run is stopped.

        The rest of the lease is for its handler to end, and for its agent to be killed.
        """
        margin: float = min(self.lease * STOP_SHARE, STOP_MARGIN)
        return self.lease - margin


class SweepSettings(Section):
    """Maintenance by the leader, which is one of the workers."""

    interval: float = Field(60, gt=0, le=3600)
    """Seconds between sweeps."""
    lease: float = Field(30, ge=1, le=600)
    """Seconds that a leader keeps its lease; it renews it at half of that."""
    limit: int = Field(100, ge=1, le=10_000)
    """Maximum rows that a sweep changes."""
    deregister_after: float = Field(86_400, ge=60)
    """Seconds after which the row of a dead worker is removed."""
