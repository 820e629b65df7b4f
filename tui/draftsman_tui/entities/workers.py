"""Health of workers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from draftsman.jobs.status_display import Meaning

if TYPE_CHECKING:
    from draftsman.settings import Settings


HEALTH_MEANINGS: Final[Mapping[str, Meaning]] = {
    "alive": Meaning.ACTIVE,
    "draining": Meaning.WARNING,
    "silent": Meaning.WARNING,
    "lost": Meaning.FAILURE,
}


def health_of(worker: Any, settings: Settings) -> str:
    """Return `alive`, `draining`, `silent` (two heartbeats missed) or `lost`."""
    from draftsman.worker.registry.registered_worker import is_lost

    if is_lost(worker, settings.worker.lease):
        return "lost"
    if worker.heartbeat_age > 2 * settings.worker.heartbeat + 5:
        return "silent"
    return "draining" if worker.draining else "alive"
