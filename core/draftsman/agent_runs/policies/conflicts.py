"""Conflicts of work with open branches of other jobs, and with the moved base. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from draftsman.agent_runs.policies.repo_policy import names

MAX_PATHS: Final = 50
"""Maximum number of paths of a conflict that are stored."""
PREFIX: Final = "draftsman/"
"""Prefix of the branches of jobs."""
_JOB: Final = re.compile(r"draftsman/(D-[1-9]\d{0,17})")


def job_of(branch: str) -> str | None:
    """Return the job of a branch; None for another branch."""
    match = _JOB.fullmatch(branch)
    return match[1] if match else None


@dataclass(frozen=True, slots=True)
class BranchConflict:
    """A branch that cannot be merged with the work, with its title and the files."""

    branch: str
    title: str
    paths: tuple[str, ...]

    @property
    def name(self) -> str:
        """The job of the branch, else the branch."""
        return job_of(self.branch) or self.branch

    @property
    def text(self) -> str:
        """The conflict in words: `D-7 (Fix rounding): src/pay.py`."""
        title = f" ({self.title})" if self.title else ""
        return f"{self.name}{title}: {names(self.paths) or 'folders'}"

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object for results and events."""
        fields = {"job": job_of(self.branch), "branch": self.branch, "title": self.title}
        return fields | {"paths": list(self.paths[:MAX_PATHS])}


def conflict_text(conflicts: Sequence[BranchConflict]) -> str:
    """Return the conflicts, a line each; '' without any."""
    return "\n".join(f"Conflicts with {conflict.text}" for conflict in conflicts)
