"""Quotas of a job, and the failure of a run that exceeds a quota. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from draftsman.errors import Failure

PREFIX: Final = "quota:"
"""Prefix of the code of a quota failure."""
LIMIT_PREFIX: Final = "limit:"
"""Prefix of the code of a failure by a limit of the repository's profile."""
UNLIMITED: Final = 2**62


class Quota(StrEnum):
    """Counters of a job in `job_quotas`."""

    EVENTS = "events"
    STEPS = "steps"
    ARTIFACTS = "artifacts"
    CHECKPOINTS = "checkpoints"
    QUESTIONS = "questions"


@dataclass(frozen=True, slots=True)
class QuotaLimit:
    """Limits of a counter and of its bytes, for all runs of a job."""

    count: int
    bytes: int = UNLIMITED


def quota_failure(name: str, text: str, setting: str) -> Failure:
    """Return the permanent failure of a run that exceeds a quota."""
    return Failure(
        f"quota: {text}; the limit is [quotas] {setting}",
        origin="agent",
        code=f"{PREFIX}{name}",
        declared="PERMANENT",
    )


def limit_failure(name: str, text: str) -> Failure:
    """Return the permanent failure of a run that exceeds a limit of the repository's profile."""
    return Failure(
        f"{text}; the limit is {name} of the repository's profile",
        origin="agent",
        code=f"{LIMIT_PREFIX}{name}",
        declared="PERMANENT",
    )


def is_quota(failure: Failure | None) -> bool:
    """Return whether a run exceeded a quota, or a limit of the repository's profile."""
    return failure is not None and (failure.code or "").startswith((PREFIX, LIMIT_PREFIX))
