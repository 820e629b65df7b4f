"""The files of a patch of git, with the lines and bytes that it adds. Pure."""

from __future__ import annotations

import base64
import os.path
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Final

from draftsman.agent_runs.changes.diff import file_name, numbered_lines, unquoted

_BINARY: Final = re.compile(r"(literal|delta) (\d+)")
_RENAMES: Final = ("rename from ", "rename to ", "copy from ", "copy to ")
_LINKS: Final = re.compile(r"(?:new file mode|new mode|index [0-9a-f]+\.\.[0-9a-f]+) 120000")
"""Lines that say that the new version is a link; `index` says it of a link with another target."""
_TEXT: Final = re.compile(r"[\t -~]{12}")
"""As many readable characters in a row as encoded or compressed content rarely has."""
_HEADER: Final = "diff --git "


@dataclass(slots=True)
class PatchFile:
    """A file of a patch; `source` is its path on the base."""

    path: str
    source: str
    added: list[tuple[int, str]] = field(default_factory=list)
    """The added lines, with their numbers in the new version."""
    removed: list[str] = field(default_factory=list)
    """The deleted lines."""
    binary: bool = False
    link: bool = False
    """Whether it is a symbolic link, whose content is its target."""
    literal: list[str] = field(default_factory=list)
    """The encoded content of a binary file; empty if the patch has only a difference."""
    deleted: bool = False
    encoded: bool = False
    """Whether the next lines are the encoded content."""
    size: int = 0
    """Bytes that the patch adds; of a binary file, the bytes of the content or the difference."""

    @property
    def paths(self) -> tuple[str, ...]:
        """The path, and that on the base if it differs."""
        return (self.path,) if self.path == self.source else (self.source, self.path)

    @property
    def linked(self) -> str | None:
        """The path in the repository to which an added link points; None for any other file.

        A target outside of the repository is returned as it is.
        """
        if not self.link or self.deleted or not self.added:
            return None
        return os.path.normpath(PurePosixPath(self.path).parent / self.added[0][1])

    def content(self) -> list[str] | None:
        """Return the lines of a binary file; None if the patch has only a difference."""
        if not self.literal:
            return None
        try:
            packed = b"".join(map(_decoded, self.literal))
            data = zlib.decompressobj().decompress(packed, self.size)
        except (ValueError, zlib.error):
            return None
        return data.decode("utf-8", "surrogateescape").split("\n")


def text_lines(lines: Iterable[str]) -> int:
    """Return how many lines of a binary file are text: one NUL makes any file binary to git."""
    return sum(_is_text(line.replace("\0", "").replace("\t", " ").rstrip("\r")) for line in lines)


def _is_text(line: str) -> bool:
    return bool(line) and (line.isprintable() or _TEXT.search(line) is not None)


def patch_files(patch: str) -> list[PatchFile]:
    """Return the files of a patch."""
    return list(_files(patch.split("\n")))


def _files(lines: list[str]) -> Iterator[PatchFile]:
    file: PatchFile | None = None
    for line, (kind, _, number) in zip(lines, numbered_lines(lines), strict=True):
        if not kind and line.startswith(_HEADER):
            if file is not None:
                yield file
            path = header_path(line)
            file = PatchFile(path, path)
        elif file is None:
            continue
        elif kind == "+":
            file.added.append((number, line[1:]))
            file.size += len(line.encode("utf-8", "surrogateescape"))  # with its line end
        elif kind == "-":
            file.removed.append(line[1:])
        elif not kind:
            _read_header(file, line)
    if file is not None:
        yield file


def header_path(line: str) -> str:
    """Return the path of a line `diff --git a/PATH b/PATH`, which is that of both sides.

    A renamed file has lines of its own for both paths.
    """
    names = line.removeprefix(_HEADER)
    half = len(names) // 2
    old_path = names[:half]
    new_path = names[half + 1 :]
    if not names.startswith('"') and old_path.removeprefix("a/") == new_path.removeprefix("b/"):
        return new_path.removeprefix("b/")
    return file_name(line) or ""


def _read_header(file: PatchFile, line: str) -> None:
    if line.startswith(_RENAMES):
        side, name = _side(line)
        if side == "from":
            file.source = name
        else:
            file.path = name
    elif line.startswith("deleted file mode"):
        file.deleted = True
    elif line.startswith(("GIT binary patch", "Binary files")):
        file.binary = True
    elif _LINKS.fullmatch(line):
        file.link = True
    elif file.binary and not file.size and (match := _BINARY.fullmatch(line)) is not None:
        file.size = int(match[2])
        file.encoded = match[1] == "literal"
    elif file.encoded:
        file.encoded = bool(line)  # an empty line ends the content
        if line:
            file.literal.append(line)


def _decoded(line: str) -> bytes:
    """Return the bytes of a line of git's base 85, which begins with their number."""
    size = ord(line[0]) - (64 if line[0] <= "Z" else 70)
    return base64.b85decode(line[1:])[:size]


def _side(line: str) -> tuple[str, str]:
    """Return `from` or `to`, and the path, of a line such as `rename from PATH`."""
    _, side, name = line.split(" ", 2)
    return side, unquoted(name[1:]) if name.startswith('"') else name
