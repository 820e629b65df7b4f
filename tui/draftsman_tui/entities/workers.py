"""Health of workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from draftsman.settings import Settings


def health_of(worker: Any, settings: Settings) -> str:
    """Return `alive`, `draining`, `silent` (two heartbeats missed) or `lost`."""
    from draftsman.worker.registry.registered_worker import is_lost

    if is_lost(worker, settings.worker.lease):
        return "lost"
    if worker.heartbeat_age > 2 * settings.worker.heartbeat + 5:
        return "silent"
    return "draining" if worker.draining else "alive"
