"""Quotas of a job: what is counted, its limit, and the failure of a run that is over. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from draftsman.errors import Failure

PREFIX: Final = "quota:"
"""Begins the code of a failure because of a quota."""
UNLIMITED: Final = 2**62


class Quota(StrEnum):
    """What is counted for each job, in `job_quotas`."""

    EVENTS = "events"
    STEPS = "steps"
    ARTIFACTS = "artifacts"
    CHECKPOINTS = "checkpoints"
    QUESTIONS = "questions"


@dataclass(frozen=True, slots=True)
class QuotaLimit:
    """How often, and how many bytes, over the life of a job."""

    count: int
    bytes: int = UNLIMITED


def quota_failure(name: str, text: str, setting: str) -> Failure:
    """Return the failure of a run that is over a quota; trying again would not help."""
    return Failure(
        f"quota: {text}; the limit is [quotas] {setting}",
        origin="agent",
        code=f"{PREFIX}{name}",
        declared="PERMANENT",
    )


def is_quota(failure: Failure | None) -> bool:
    """Return whether a run failed because of a quota."""
    return failure is not None and (failure.code or "").startswith(PREFIX)
