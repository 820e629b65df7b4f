"""Repositories in folders of this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Final

BARE_ENTRIES: Final = ("HEAD", "objects", "refs")
"""Entries in the top folder of a bare repository."""


def repository_top(folder: Path) -> Path | None:
    """Return the top folder of the repository that contains an absolute path; None without one."""
    return next((place for place in (folder, *folder.parents) if _is_top(place)), None)


def _is_top(folder: Path) -> bool:
    return (folder / ".git").exists() or all((folder / name).exists() for name in BARE_ENTRIES)
