"""Files of a patch as a tree of folders. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from draftsman_tui.dashboard.changes.patch import FileSection

MAX_FILES: Final = 500
"""Files that the tree lists; the view has all."""
TreeRow = tuple[str, int | None]
"""A label, and the index of its file; None for a folder."""


def tree(files: Sequence[FileSection], accepted: Collection[int] = ()) -> list[TreeRow]:
    """Return the rows of the tree, in the order of the patch."""
    rows: list[TreeRow] = []
    shown: list[str] = []
    for nth, file in enumerate(files[:MAX_FILES]):
        *folders, name = file.name.split("/")
        common = 0
        while common < min(len(shown), len(folders)) and shown[common] == folders[common]:
            common += 1
        rows += [(f"{'  ' * at}{folders[at]}/", None) for at in range(common, len(folders))]
        shown = folders
        sign = "✓ " if nth in accepted else ""
        rows.append((f"{'  ' * len(folders)}{sign}{name} +{file.added} -{file.removed}", nth))
    if len(files) > MAX_FILES:
        rows.append((f"… and {len(files) - MAX_FILES} more", None))
    return rows
