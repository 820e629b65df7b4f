"""Quotas of agents, in the database and on the worker's disk."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from draftsman.settings.section import Section

_Count = Annotated[int, Field(ge=1, le=10**9)]
_Bytes = Annotated[int, Field(ge=1024, le=2**50)]
MEBIBYTE = 1024 * 1024


class QuotaSettings(Section):
    """Quotas of an agent. A run that exceeds a quota fails with the code `quota:…`.

    Logs are truncated instead, with a note in the last line.
    """

    messages: _Count = 100_000
    """Messages of an agent per run."""
    log_bytes: _Bytes = 16 * MEBIBYTE
    """Bytes of a run's log, of any job type; the rest is discarded."""
    job_log_bytes: _Bytes = 128 * MEBIBYTE
    """Bytes of the logs of all runs of a job, of any type; the rest is discarded."""
    activity_rows: Annotated[int, Field(ge=10, le=100_000)] = 1000
    """Rows of the activity of an agent per job; the oldest are deleted."""
    activity_bytes: _Bytes = 2 * MEBIBYTE
    """Bytes of these rows."""
    transcript_bytes: Annotated[int, Field(ge=1024, le=24 * MEBIBYTE)] = 8 * MEBIBYTE
    """Bytes of the transcript of a run; the rest is discarded."""
    job_transcript_bytes: _Bytes = 64 * MEBIBYTE
    """Bytes of the transcripts of all runs of a job; the rest is discarded."""
    events: _Count = 2000
    """Events of an agent per job."""
    steps: _Count = 4000
    """Step messages per job."""
    step_bytes: _Bytes = 32 * MEBIBYTE
    """Bytes of the results of steps."""
    artifacts: _Count = 100
    """Artifacts per job, including replaced artifacts."""
    artifact_bytes: _Bytes = 256 * MEBIBYTE
    """Bytes of artifacts."""
    checkpoints: _Count = 1000
    """Checkpoints per job; the latest five are kept."""
    checkpoint_bytes: _Bytes = 1024 * MEBIBYTE
    """Bytes of checkpoints with the saved work tree, including replaced checkpoints."""
    questions: _Count = 50
    """Questions and approvals of an agent per job."""
    disk_bytes: _Bytes = 5 * 1024 * MEBIBYTE
    """Bytes on disk per run: clone, home directory and temporary files."""
    disk_interval: float = Field(5, gt=0, le=3600)
    """Minimum seconds between two measurements of the disk usage."""
