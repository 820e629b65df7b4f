"""What a clone has besides the files of its commit: contents of Git LFS, and submodules."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from draftsman.agent_runs.clones.left_out import printable
from draftsman.agent_runs.clones.submodules import OpenSource
from draftsman.formats.amounts import counted

NAMED: Final = 3
"""Maximum number of paths in a text."""


@dataclass(frozen=True, slots=True)
class CloneParts:
    """The parts that the profile of the repository wants."""

    lfs: bool = False
    """Whether files of Git LFS have their contents, and not pointers."""
    submodules: OpenSource | None = None
    """The sources of submodules; None: submodules stay empty."""


@dataclass(frozen=True, slots=True)
class MissingPart:
    """Parts that a clone does not have, and why."""

    kind: str
    """`lfs` or `submodules`."""
    paths: tuple[str, ...]
    reason: str

    @property
    def text(self) -> str:
        """The parts and the reason, in words."""
        named = ", ".join(self.paths[:NAMED])
        if (more := len(self.paths) - NAMED) > 0:
            named += f" and {more:,} more"
        count = len(self.paths)
        if self.kind == "lfs":
            return f"the contents of {counted(count, 'file')} of Git LFS ({named}): {self.reason}"
        return f"the {'submodule' if count == 1 else 'submodules'} {named}: {self.reason}"

    def as_json(self) -> dict[str, object]:
        """Return it as a JSON object."""
        return {"kind": self.kind, "paths": list(self.paths[:100]), "text": self.text[:1000]}


def missing(kind: str, paths: Iterable[bytes], reason: str) -> MissingPart:
    """Return a missing part, whose paths are printable."""
    return MissingPart(kind, tuple(printable(path) for path in sorted(paths)), reason)
