"""Follow-ups on the pull requests of jobs. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TrackedPull:
    """A pull request of a job whose events draftsman follows; `root` is its first job."""

    root: int
    forge: str
    project: str
    number: int
    url: str
    branch: str
    base: str
    head: str
    """The commit that was published last."""
