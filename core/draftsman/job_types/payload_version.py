"""Payloads of jobs that were submitted when their type had other parameters."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from draftsman.errors import ConfigError, Failure
from draftsman.jobs.requests.invocation import PAYLOAD_VERSION
from draftsman.jobs.runs.run import ClaimedJob

Migrate = Callable[[dict[str, Any], int], Mapping[str, Any]]
"""Returns the payload of today for an older one and its version."""


@dataclass(frozen=True, slots=True)
class PayloadVersion:
    """The version of a type's parameters, and how older payloads become payloads of it."""

    type: str
    number: int
    migrate: Migrate | None

    def __post_init__(self) -> None:
        """Raise ConfigError."""
        if not 1 <= self.number < 2**31:
            raise ConfigError(f"{self.type}: version {self.number!r} is no number from 1")
        if self.migrate is not None and self.number == 1:
            raise ConfigError(f"{self.type}: migrate needs version=2 or more; the first is 1")

    def payload_of(self, job: ClaimedJob) -> Mapping[str, Any]:
        """Return the payload of a job, migrated if it is older; raises Failure."""
        before = payload_version(job.overrides)
        if before > self.number:
            raise Failure(
                f"{job.name} was submitted for version {before} of {self.type}; this worker has"
                f" version {self.number}, and leaves it to a newer one",
                code="payload_too_new",
                declared="TRANSIENT_INFRA",
            )
        if before == self.number or self.migrate is None:
            return job.payload
        try:
            payload = self.migrate(copy.deepcopy(job.payload), before)
        except Exception as error:
            raise self._failed(before, f"{type(error).__name__}: {error}") from error
        if not isinstance(payload, Mapping):
            raise self._failed(before, f"migrate returned {type(payload).__name__}, no mapping")
        return payload

    def note(self, job: ClaimedJob) -> str:
        """Return what to add to the problem of an older payload; else nothing."""
        before = payload_version(job.overrides)
        if before == self.number:
            return ""
        how = "not migrated" if self.migrate is None else "migrated"
        return f" (submitted for version {before} of the type, {how} to version {self.number})"

    def _failed(self, before: int, problem: str) -> Failure:
        text = f"payload of {self.type}: cannot be migrated from version {before} to {self.number}"
        return Failure(f"{text}: {problem}", code="invalid_payload", declared="PERMANENT")


def payload_version(overrides: Mapping[str, Any]) -> int:
    """Return the version of the parameters for which a job was submitted."""
    version = overrides.get(PAYLOAD_VERSION)
    return version if isinstance(version, int) else 1
