"""The result of a submission."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from draftsman.jobs.job import Status


class SubmitResult(NamedTuple):
    """The result for the request at index `place` of the batch.

    `outcome` is created, deduplicated (same type and key) or joined (same subject, active).
    """

    place: int
    number: int
    id: UUID
    status: Status
    request_digest: str
    outcome: str
    replaced: int | None = None
    """The job that was canceled for it, before its start."""
