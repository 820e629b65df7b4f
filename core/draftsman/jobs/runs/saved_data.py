"""Data that runs save, as it is read: steps, checkpoints, artifacts and logs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from draftsman.jobs.reserved_names import Owner


@dataclass(frozen=True, slots=True)
class Step:
    """A row of `job_steps`."""

    key: str
    status: str
    invocation_id: str
    result: Any
    owner: str = Owner.HANDLER


@dataclass(frozen=True, slots=True)
class Artifact:
    """A row of `artifacts`; `size` in bytes."""

    id: int
    job: int
    run: int
    name: str
    kind: str
    size: int
    sha256: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class StepSummary:
    """A step without its result; `size` of the result in bytes."""

    key: str
    status: str
    run: int
    size: int | None
    created_at: datetime
    finished_at: datetime | None


@dataclass(frozen=True, slots=True)
class CheckpointSummary:
    """A checkpoint without its data; sizes of the data and of the saved work in bytes."""

    run: int
    size: int
    work_size: int | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class LogChunk:
    """A chunk of a run's log."""

    run: int
    seq: int
    text: str
    created_at: datetime
