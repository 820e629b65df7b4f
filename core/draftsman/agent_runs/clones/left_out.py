"""Files of an agent that git does not record, by the errors of `git add`."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import Final

from draftsman.formats.invisible import escape_invisible

OWN_REPOSITORY: Final = "a repository of its own"
SUBMODULE: Final = "a submodule, which is read-only"
SHOWN: Final = 20
"""Maximum number of paths that a result names."""
_UNREADABLE: Final = (
    re.compile(rb'^error: open\("(?P<path>.+?)"\): (?P<reason>[^\n]+)$', re.MULTILINE | re.DOTALL),
    re.compile(
        rb"^warning: could not open directory '(?P<path>.+?)/': (?P<reason>[^\n]+)$",
        re.MULTILINE | re.DOTALL,
    ),
)
_REFUSED: Final = (
    (rb"^error: (?P<path>[^\n]+): can only add regular files", "neither a file nor a link"),
    (rb"^error: unable to add '(?P<path>.+?)' to index$", "a name that git refuses"),
    (rb"^error: unable to index file '(?P<path>.+?)'$", "its content cannot be stored"),
    (rb"^fatal: BOM is \w+ in '(?P<path>.+?)' if encoded", "not in its working-tree-encoding"),
    (rb"^fatal: failed to encode '(?P<path>.+?)' from", "not in its working-tree-encoding"),
)
"""Messages of git about a path of which no version can be recorded."""


@dataclass(slots=True)
class LeftOut:
    """Paths that are not part of a snapshot, each with the reason."""

    unread: dict[bytes, str] = field(default_factory=dict)
    """Repositories inside the tree, and what may not be read."""
    refused: dict[bytes, str] = field(default_factory=dict)
    """What git cannot record."""

    def add_errors(self, errors: bytes) -> bool:
        """Add the paths in the standard error of `git add`; return whether any is new."""
        before = len(self.unread) + len(self.refused)
        for pattern in _UNREADABLE:
            for match in pattern.finditer(errors):
                self.unread[match["path"]] = match["reason"].decode(errors="replace").lower()
        for text, reason in _REFUSED:
            for match in re.finditer(text, errors, re.MULTILINE | re.DOTALL):
                if match["path"] not in self.unread:
                    self.refused.setdefault(match["path"], reason)
        return len(self.unread) + len(self.refused) > before


def described(paths: dict[bytes, str]) -> tuple[str, ...]:
    """Return `path (reason)` for each path, at most SHOWN."""
    texts = [f"{printable(path)} ({reason})" for path, reason in sorted(paths.items())]
    more = len(texts) - SHOWN
    return (*texts[:SHOWN], f"{more} more") if more > 0 else tuple(texts)


def printable(path: bytes) -> str:
    """Return a path as visible text on a line."""
    return escape_invisible(os.fsdecode(path), lines=False)
