"""Liveness of registered workers, as people and submissions see it."""

from __future__ import annotations

from draftsman.jobs.read_models import RegisteredWorker
from draftsman.processes.host import Liveness, liveness


def is_lost(worker: RegisteredWorker, lease: float) -> bool:
    """Return whether a worker was silent for its lease, or its process and its session ended."""
    if worker.heartbeat_age >= lease:
        return True
    state = liveness(worker.host_id, worker.pid, worker.pid_started)
    return state is Liveness.ENDED and not worker.connected
