"""Quotas of agents, in the database and on the worker's disk."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from draftsman.settings.section import Section

_Count = Annotated[int, Field(ge=1, le=10**9)]
_Bytes = Annotated[int, Field(ge=1024, le=2**50)]
MEBIBYTE = 1024 * 1024


class QuotaSettings(Section):
    """Limits on the data of a job (docs/agent-protocol.md).

    They protect the database and the disk. A run that exceeds a limit fails with the code
    quota:NAME and is not retried; a log is truncated instead.
    """

    messages: _Count = 100_000
    """Lines that an agent may send in a run."""
    log_bytes: _Bytes = 16 * MEBIBYTE
    """Bytes of the log of a run, of any job type; the last line has the number of omitted bytes."""
    job_log_bytes: _Bytes = 128 * MEBIBYTE
    """Bytes of the logs of all runs of a job, of any type."""
    activity_rows: Annotated[int, Field(ge=10, le=100_000)] = 1000
    """Rows of the activity of a job that are kept; the oldest are deleted."""
    activity_bytes: _Bytes = 2 * MEBIBYTE
    """Bytes of these rows."""
    transcript_bytes: Annotated[int, Field(ge=1024, le=24 * MEBIBYTE)] = 8 * MEBIBYTE
    """Bytes of the transcript of a run; the rest is discarded."""
    job_transcript_bytes: _Bytes = 64 * MEBIBYTE
    """Bytes of the transcripts of all runs of a job."""
    events: _Count = 2000
    """Events of a job that its agent sends."""
    steps: _Count = 4000
    """Messages of a job about steps."""
    step_bytes: _Bytes = 32 * MEBIBYTE
    """Bytes of the results of these steps."""
    artifacts: _Count = 100
    """Artifacts of a job, including replaced artifacts."""
    artifact_bytes: _Bytes = 256 * MEBIBYTE
    """Bytes of these artifacts."""
    checkpoints: _Count = 1000
    """Checkpoints of a job; the latest five are kept."""
    checkpoint_bytes: _Bytes = 1024 * MEBIBYTE
    """Bytes of these checkpoints with their bundles, including replaced checkpoints."""
    questions: _Count = 50
    """Questions and approvals of a job that its agent asks."""
    tree_files: _Count = 500_000
    """Files of a commit that is cloned for a run."""
    tree_bytes: _Bytes = 2 * 1024 * MEBIBYTE
    """Bytes of these files; a small repository may have the same file many times."""
    disk_bytes: _Bytes = 5 * 1024 * MEBIBYTE
    """Disk space of a run in bytes: its clone, its home folder and its temporary files."""
    disk_interval: float = Field(5, gt=0, le=3600)
    """Minimum seconds between measurements of the disk."""
