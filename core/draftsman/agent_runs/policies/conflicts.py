"""Conflicts of work with open branches of other jobs, and with the moved base. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from draftsman.agent_runs.policies.repo_policy import names

MAX_PATHS: Final = 50
"""Maximum number of paths of a conflict that are stored."""


@dataclass(frozen=True, slots=True)
class BranchConflict:
    """A branch that cannot be merged with the work, with its title, the files and its job."""

    branch: str
    title: str
    paths: tuple[str, ...]
    job: str | None = None

    @property
    def name(self) -> str:
        """The job of the branch, else the branch."""
        return self.job or self.branch

    @property
    def text(self) -> str:
        """The conflict in words: `D-7 (Fix rounding): src/pay.py`."""
        title = f" ({self.title})" if self.title else ""
        return f"{self.name}{title}: {names(self.paths) or 'folders'}"

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object for results and events."""
        fields = {"job": self.job, "branch": self.branch, "title": self.title}
        return fields | {"paths": list(self.paths[:MAX_PATHS])}


def conflict_text(conflicts: Sequence[BranchConflict]) -> str:
    """Return the conflicts, a line each; '' without any."""
    return "\n".join(f"Conflicts with {conflict.text}" for conflict in conflicts)
