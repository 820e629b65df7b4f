"""Random numbers and UUIDs of a job, which are the same in each of its runs. Pure."""

from __future__ import annotations

from random import Random
from uuid import UUID


class RunConstants:
    """Values that depend on the job alone, and on the order of the calls in a run."""

    def __init__(self, job: UUID) -> None:
        self.random = Random(str(job))
        self._uuids = Random(f"uuid {job}")

    def uuid(self) -> UUID:
        """Return the next UUID of the job."""
        return UUID(int=self._uuids.getrandbits(128), version=4)
