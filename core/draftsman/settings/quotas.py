"""How much the agent of a job may leave, in the database and on the disk of its worker."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from draftsman.settings.tables import Section

_Count = Annotated[int, Field(ge=1, le=10**9)]
_Bytes = Annotated[int, Field(ge=1024, le=2**50)]
MEBIBYTE = 1024 * 1024


class QuotaSettings(Section):
    """Limits of an agent: counts and bytes. A run that is over one fails with the code `quota:…`.

    Only logs are cut instead: a line at the end of what was kept says so.
    """

    messages: _Count = 100_000
    """Lines of one run that an agent may send, whatever they are."""
    log_bytes: _Bytes = 16 * MEBIBYTE
    """Bytes of one run's log; the rest is left out, of other job types too."""
    job_log_bytes: _Bytes = 128 * MEBIBYTE
    """Bytes of the logs of all runs of a job; the rest is left out, of other job types too."""
    events: _Count = 2000
    """Events of a job that its agent sends."""
    steps: _Count = 4000
    """Messages of a job about steps."""
    step_bytes: _Bytes = 32 * MEBIBYTE
    """Bytes of the steps' results."""
    artifacts: _Count = 100
    """Artifacts of a job, one that replaces another included."""
    artifact_bytes: _Bytes = 256 * MEBIBYTE
    """Bytes of these."""
    checkpoints: _Count = 1000
    """Checkpoints of a job; the latest five stay."""
    checkpoint_bytes: _Bytes = 1024 * MEBIBYTE
    """Bytes of their data and of the work with them, those that were replaced included."""
    questions: _Count = 50
    """Questions and gates of a job that its agent asks."""
    disk_bytes: _Bytes = 5 * 1024 * MEBIBYTE
    """Bytes on the disk of one run: its clone, its home folder and its temporary files."""
    disk_interval: float = Field(5, gt=0, le=3600)
    """Seconds between two measurements of these, at least."""
