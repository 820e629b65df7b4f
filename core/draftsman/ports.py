"""What others supply to the core, as small protocols."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from draftsman.domain.run import Lease


class Notify(Protocol):
    """Sends messages to people."""

    async def notify(self, lease: Lease, targets: Sequence[str], text: str) -> list[int]:
        """Put a message for each target on its way; return the deliveries' ids.

        A target is `channel:place`; none given: the targets of the job. The messages are written
        with the run's lease, in one transaction. Raises LeaseLost, and UsageError for a target
        that cannot be meant.
        """
