"""Changes of the source files below a folder."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

INTERVAL: Final = 0.5
"""Seconds between two looks at the files."""
SKIPPED: Final = frozenset({"__pycache__", "node_modules", "site-packages", "venv"})
"""Folders without sources of the app, besides hidden ones."""
MAX_FILES: Final = 20_000
"""Files that are looked at: more are no app, but somebody's home."""
Stamps = dict[str, tuple[int, int]]
"""The time and the size of each file."""


class SourceWatch:
    """The Python files below a folder, as they were when this was made."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stamps = self._look()

    async def changes(self) -> AsyncIterator[str]:
        """Yield the name of a changed, new or removed file, after each look that found some."""
        while True:
            await asyncio.sleep(INTERVAL)
            if (name := await asyncio.to_thread(self.changed)) is not None:
                yield name

    def changed(self) -> str | None:
        """Return the name of a file that changed since the last look; None without one."""
        before, self._stamps = self._stamps, self._look()
        different = before.items() ^ self._stamps.items()
        if not different:
            return None
        return os.path.relpath(min(path for path, _ in different), self._folder)

    def _look(self) -> Stamps:
        stamps: Stamps = {}
        for path in self._files():
            try:
                found = os.stat(path)  # noqa: PTH116 - faster, for thousands of files
            except OSError:  # removed meanwhile
                continue
            stamps[path] = (found.st_mtime_ns, found.st_size)
            if len(stamps) == MAX_FILES:
                break
        return stamps

    def _files(self) -> Iterator[str]:
        for folder, folders, names in os.walk(self._folder):
            folders[:] = sorted(
                name for name in folders if name not in SKIPPED and not name.startswith(".")
            )
            yield from (os.path.join(folder, name) for name in sorted(names) if name[-3:] == ".py")  # noqa: PTH118
