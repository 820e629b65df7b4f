"""Diffs as files and numbered lines: the reader of every front end. Pure.

A diff of 20 MB is read in about a second.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from draftsman.agent_runs.changes.diff import file_name, numbered_lines, unquoted
from draftsman.agent_runs.changes.patch_files import header_path
from draftsman.agent_runs.changes.shown_code import shown_code, unseen
from draftsman.formats.amounts import format_size
from draftsman.formats.invisible import braces

MAX_NAMED: Final = 5
"""Invisible characters of a file that are named."""
UNNAMED: Final = "changes"
"""The path of changes that name no file."""
MODES: Final = {
    "100644": "",
    "100755": "executable",
    "120000": "symbolic link",
    "160000": "submodule",
}
"""What a mode of git means; an ordinary file needs no word."""
_FIELD: Final = re.compile(
    r"index [0-9a-f]+\.\.[0-9a-f]+(?: (?P<kept>\d{6}))?|(?:dis)?similarity index \d{1,3}%"
    r"|old mode (?P<old>\d{6})|new mode (?P<new>\d{6})"
    r"|new file mode (?P<created>\d{6})|deleted file mode (?P<deleted>\d{6})"
    r"|(?P<origin>rename|copy) (?:from (?P<source>.+)|to (?P<target>.+))"
)
_SIZE: Final = re.compile(r"(?:literal|delta) (\d{1,12})")
_ENCODED: Final = re.compile(r"[A-Za-z][!-&(-+\--?@-Z^-~]+|")
"""A line of the encoded content of a binary file."""


@dataclass(slots=True)
class DiffFile:
    """A file of a diff: its lines are those from `body` to before `end`."""

    first: int
    """Index of its first line."""
    path: str = UNNAMED
    body: int = 0
    end: int = 0
    added: int = 0
    removed: int = 0
    hunks: list[int] = field(default_factory=list)
    """Index of the first line of each hunk, in order."""
    untold: list[int] = field(default_factory=list)
    """Indexes of the lines before `body` that neither path nor notes tell."""
    notes: list[str] = field(default_factory=list)
    """Changes of its mode and name: `new executable (100755)`, `renamed from a.py`."""
    special: list[str] = field(default_factory=list)
    """Those of the notes that the sums of a diff tell, too."""

    @property
    def name(self) -> str:
        """The path as visible text."""
        return shown_code(self.path).text


class Diff:
    """A diff that was read.

    `kinds`, `old` and `new` have the kind and the numbers of each line, as from `numbered_lines`.
    """

    def __init__(self, text: str) -> None:
        self.lines = text.split("\n")
        while self.lines and not self.lines[-1]:
            self.lines.pop()
        count = len(self.lines)
        self.kinds: list[str] = []
        self.old = array("I", bytes(4 * count))
        self.new = array("I", bytes(4 * count))
        self.files: list[DiffFile] = []
        self._read()

    def _read(self) -> None:
        section: _Section | None = None
        for index, (kind, old, new) in enumerate(numbered_lines(self.lines)):
            line = self.lines[index]
            self.kinds.append(kind)
            if kind and kind != "@":  # most lines: an unusual one alone costs a call
                self.old[index] = old
                self.new[index] = new
                if section is not None and not (line.isascii() and line.isprintable()):
                    section.unseen |= unseen(line)
                continue
            if section is None and not line.strip():
                continue
            if section is None or (not kind and section.ends_at(line)):
                if section is not None:
                    section.close(self.kinds, index)
                section = _Section(index)
                self.files.append(section.file)
            section.read(kind, index, line)
        if section is not None:
            section.close(self.kinds, len(self.lines))


def changed_files(diff: str) -> list[tuple[str, int, int]]:
    """Return (path, lines added, lines removed) of each file; the new path of a renamed file."""
    return [(file.path, file.added, file.removed) for file in Diff(diff).files]


class _Section:
    """The lines of a file that are being read."""

    def __init__(self, first: int) -> None:
        self.file = DiffFile(first)
        self.unseen: dict[str, None] = {}
        """The invisible characters of its lines."""
        self._header = _Header()

    def ends_at(self, line: str) -> bool:
        """Return whether a line outside of hunks begins another file."""
        return line.startswith("diff --git ") or (bool(self.file.hunks) and line.startswith("--- "))

    def read(self, kind: str, index: int, line: str) -> None:
        """Read a line that is before, between or behind those of the hunks."""
        file = self.file
        if kind == "@":
            file.hunks.append(index)
        elif not (kind or file.hunks):
            if self._header.read(line) or not line.strip():
                return
            file.untold.append(index)
        self.unseen |= unseen(line)

    def close(self, kinds: list[str], end: int) -> None:
        """Write what the lines before `end` say; `kinds` are those of all lines so far."""
        file = self.file
        header = self._header
        file.end = end
        file.body = file.hunks[0] if file.hunks else end
        in_hunks = kinds[file.body : end]
        file.added = in_hunks.count("+")
        file.removed = in_hunks.count("-")
        file.path = header.path or UNNAMED
        file.notes = header.notes()
        if "(" in (mode := header.mode()):
            file.special.append(mode)
        if header.binary():
            file.special.append("binary")
        if self.unseen:
            file.notes.append(_invisible_note(self.unseen))
            file.special.append("with invisible characters")


def _invisible_note(characters: Iterable[str]) -> str:
    named = [*map(braces, characters)]
    more = [f"and {len(named) - MAX_NAMED} more"] if len(named) > MAX_NAMED else []
    return f"invisible characters: {' '.join([*named[:MAX_NAMED], *more])}"


class _Header:
    """What the lines before the first hunk of a file say."""

    def __init__(self) -> None:
        self.path = ""
        self._source: str | None = None
        self._fields: dict[str, str] = {}
        self._binary = False
        self._size = 0

    def read(self, line: str) -> bool:
        """Read a line; return whether the notes and the path tell all of it."""
        if line.startswith("diff --git "):
            self.path = header_path(line)
        elif line.startswith("--- "):
            self._source = file_name(line)
        elif line.startswith("+++ "):
            self.path = file_name(line) or self._source or self.path
        elif line == "GIT binary patch" or (
            line.startswith("Binary files ") and line.endswith(" differ")
        ):
            self._binary = True
        elif self._binary:
            return self._read_content(line)
        elif (match := _FIELD.fullmatch(line)) is not None:
            self._read_field(match)
        else:
            return False
        return True

    def _read_content(self, line: str) -> bool:
        if (match := _SIZE.fullmatch(line)) is None:
            return _ENCODED.fullmatch(line) is not None
        self._size = self._size or int(match[1])
        return True

    def _read_field(self, match: re.Match[str]) -> None:
        self._fields |= {name: value for name, value in match.groupdict().items() if value}
        if target := self._fields.pop("target", ""):
            self.path = _path(target)
        if source := self._fields.pop("source", ""):
            self._source = _path(source)

    def notes(self) -> list[str]:
        """Return what the lines say besides the path."""
        origin = "copied" if self._fields.get("origin") == "copy" else "renamed"
        renamed = self._source not in (None, self.path)
        source = f"{origin} from {shown_code(self._source or '').text}" if renamed else ""
        return [note for note in (source, self.mode(), self.binary()) if note]

    def mode(self) -> str:
        """Return what the modes say; empty for an ordinary file that was edited."""
        fields = self._fields
        if new := fields.get("new"):
            name = MODES.get(new)
            return f"mode {fields.get('old', '?')} → {new}" + (f" ({name})" if name else "")
        created = fields.get("created")
        state = "new" if created else "deleted" if "deleted" in fields else ""
        mode = created or fields.get("deleted") or fields.get("kept") or "100644"
        name = MODES.get(mode, "mode")
        return " ".join(filter(None, (state, f"{name} ({mode})" if name else "")))

    def binary(self) -> str:
        """Return that the file is binary; empty for any other."""
        size = f" of {format_size(self._size)}" if self._size else ""
        return f"binary{size}: its content is not shown" if self._binary else ""


def _path(text: str) -> str:
    return unquoted(text[1:]) if text.startswith('"') else text
