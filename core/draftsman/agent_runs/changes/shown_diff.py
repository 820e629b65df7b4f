"""Diffs as people see them in every front end. Pure.

Each file has its modes, and each line its numbers. No content is left out without a word: a line
that is cut says by how much, characters that nobody sees are named, and so are long blanks, which
would push the code behind them off the screen.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

from draftsman.agent_runs.changes.diff import file_name, numbered_lines, unquoted
from draftsman.agent_runs.changes.patch_files import header_path
from draftsman.formats.amounts import counted, format_size
from draftsman.formats.invisible import STRICT, braces

MAX_LINES: Final = 3000
"""Lines of a diff that are shown; the rest is counted."""
MAX_WIDTH: Final = 1000
"""Characters of a line that are shown; the rest is counted."""
WHOLE: Final = sys.maxsize
"""The width of a line that is never cut."""
MAX_BLANKS: Final = 60
"""Blanks in a row that are shown as they are."""
MAX_MARKS: Final = 4
"""Combining marks of a character; more of them cover the lines around."""
MAX_FILES: Final = 20
"""Files that statistics list by name."""
MAX_NAMED: Final = 5
"""Invisible characters of a file that are named."""
MODES: Final = {
    "100644": "",
    "100755": "executable",
    "120000": "symbolic link",
    "160000": "submodule",
}
"""What a mode of git means; an ordinary file needs no word."""
_UNSEEN: Final = re.compile(f"(?P<unseen>[{STRICT}]+)|[ \t]{{{MAX_BLANKS + 1},}}")
_NAMED: Final = re.compile(f"[{STRICT}]")
_FIELD: Final = re.compile(
    r"index [0-9a-f]+\.\.[0-9a-f]+(?: (?P<kept>\d{6}))?|(?:dis)?similarity index \d{1,3}%"
    r"|old mode (?P<old>\d{6})|new mode (?P<new>\d{6})"
    r"|new file mode (?P<created>\d{6})|deleted file mode (?P<deleted>\d{6})"
    r"|(?P<origin>rename|copy) (?:from (?P<source>.+)|to (?P<target>.+))"
)
_SIZE: Final = re.compile(r"(?:literal|delta) (\d{1,12})")
_ENCODED: Final = re.compile(r"[A-Za-z][!-&(-+\--?@-Z^-~]+|")
"""A line of the encoded content of a binary file."""


@dataclass(frozen=True, slots=True)
class ShownText:
    """Visible text; `cut` is the number of characters of the original that were left out."""

    text: str
    cut: int = 0


@dataclass(frozen=True, slots=True)
class ShownLine:
    """A line with its kind and numbers as from `numbered_lines`; its text begins with its sign."""

    kind: str
    text: str
    old: int = 0
    new: int = 0
    cut: int = 0


@dataclass(slots=True)
class ShownFile:
    """A file of a diff."""

    path: str
    """As it is in the repository; `name` is visible text."""
    notes: list[str] = field(default_factory=list)
    """What is not in its lines: `new executable (100755)`, `renamed from a.py`."""
    special: list[str] = field(default_factory=list)
    """Those of the notes that the sums of a diff tell, too."""
    added: int = 0
    removed: int = 0
    lines: list[ShownLine] = field(default_factory=list)
    hidden: int = 0
    """Lines that were left out."""

    @property
    def name(self) -> str:
        """The path as visible text."""
        return shown_code(self.path).text

    @property
    def size(self) -> int:
        """The number of all of its lines."""
        return len(self.lines) + self.hidden

    @property
    def notice(self) -> str:
        """Return what was left out of this file; "" for nothing."""
        return _notice([self])


@dataclass(frozen=True, slots=True)
class ShownDiff:
    """The files of a diff."""

    files: Sequence[ShownFile]

    @property
    def notice(self) -> str:
        """Return what was left out: `12 lines are not shown, 1 line is cut`; "" for nothing."""
        return _notice(self.files)

    @property
    def totals(self) -> str:
        """Return the sums in a line: `3 files changed, +9 -1, 1 executable (100755)`."""
        plus = sum(file.added for file in self.files)
        minus = sum(file.removed for file in self.files)
        special = Counter(word for file in self.files for word in file.special)
        words = [f"{count:,} {word}" for word, count in special.items()]
        return ", ".join(
            [f"{counted(len(self.files), 'file')} changed", f"+{plus} -{minus}", *words]
        )


def _notice(files: Sequence[ShownFile]) -> str:
    hidden = sum(file.hidden for file in files)
    cuts = [line.cut for file in files for line in file.lines if line.cut]
    parts = []
    if hidden:
        parts.append(f"{counted(hidden, 'more line is', 'more lines are')} not shown")
    if cuts:
        cut = counted(sum(cuts), "character")
        parts.append(f"{counted(len(cuts), 'line is', 'lines are')} cut by {cut}")
    return ", ".join(parts)


def shown_diff(patch: str, *, most: int = MAX_LINES, width: int = MAX_WIDTH) -> ShownDiff:
    """Return at most so many lines of a diff, by file."""
    sections: list[_Section] = []
    lines = patch.removesuffix("\n").split("\n") if patch else []
    for line, (kind, old, new) in zip(lines, numbered_lines(lines), strict=True):
        if not sections or (not kind and sections[-1].ends_at(line)):
            sections.append(_Section())
        most -= sections[-1].read(kind, line, old, new, width if most > 0 else 0)
    return ShownDiff([section.done() for section in sections])


def diffstat(diff: str, most: int | None = MAX_FILES) -> str:
    """Count the added and removed lines of each file, and their sums, as `git diff --stat`.

    At most so many files are listed; None: all. The sums tell the modes of all files.
    """
    shown = shown_diff(diff, most=0)
    most = len(shown.files) if most is None else most
    rows = [
        ", ".join([f"{file.name} | +{file.added} -{file.removed}", *file.notes])
        for file in shown.files[:most]
    ]
    if len(shown.files) > most:
        rows.append(f"… and {len(shown.files) - most:,} more")
    return "\n".join([*rows, shown.totals])


def shown_beginning(diff: str, lines: int, room: int, measure: Callable[[str], int] = len) -> str:
    """Return the first lines of a diff as visible text, and how much of it is missing.

    The lines have at most that room, which `measure` tells of a text.
    """
    rows = diff.removesuffix("\n").split("\n")
    shown = []
    for row in rows[:lines]:
        line = shown_code(row).text
        room -= measure(line) + 1
        if room < 0:
            break
        shown.append(line)
    if hidden := len(rows) - len(shown):
        shown.append(f"[… {counted(hidden, 'more line')}]")
    return "\n".join(shown)


def visible_lines(diff: str) -> str:
    """Return a whole diff as visible text."""
    return "\n".join(shown_code(line, WHOLE).text for line in diff.split("\n"))


def shown_code(text: str, most: int = MAX_WIDTH) -> ShownText:
    """Return a line of code as visible text of about so many characters.

    Invisible characters are escaped, and long blanks replaced by their number. The count of the
    characters that were cut is a part of the text.
    """
    shown = []
    room = most
    length = 0
    for part, visible in _parts(text):
        if len(visible) > room and part == visible:
            shown.append(part[:room])
            length += room
            room = 0
            break
        if not room:
            break
        shown.append(visible)
        length += len(part)
        room = max(0, room - len(visible))
    cut = len(text) - length
    if cut:
        shown.append(f" [… {counted(cut, 'more character')}]")
    return ShownText("".join(shown), cut)


def file_notes(lines: Sequence[str], hunks: int) -> list[str]:
    """Return what the lines of a file in a patch do not show; its hunks begin at that index."""
    header = _Header()
    other = [line for line in lines[:hunks] if not header.read(line) and line.strip()]
    notes = header.notes() + [shown_code(line).text for line in other[:MAX_NAMED]]
    if len(other) > MAX_NAMED:
        notes.append(counted(len(other) - MAX_NAMED, "more line"))
    unseen: dict[str, None] = {}
    for line in lines[hunks:]:
        unseen |= _unseen(line)
    return [*notes, _invisible_note(unseen)] if unseen else notes


def _unseen(line: str) -> dict[str, None]:
    """Return the invisible characters of a line; the line ends of Windows are none."""
    if line.isascii() and line.isprintable():
        return {}
    return dict.fromkeys(_NAMED.findall(line.removesuffix("\r")))


def _invisible_note(unseen: Iterable[str]) -> str:
    named = [*map(braces, unseen)]
    more = [f"and {len(named) - MAX_NAMED} more"] if len(named) > MAX_NAMED else []
    return f"invisible characters: {' '.join([*named[:MAX_NAMED], *more])}"


def _parts(text: str) -> Iterator[tuple[str, str]]:
    """Yield the parts of a text, each with what is shown of it."""
    end = 0
    for match in _UNSEEN.finditer(text):
        yield from _marks(text[end : match.start()])
        end = match.end()
        if match["unseen"]:
            yield from (
                (run, braces(run)) for _, chars in groupby(match[0]) if (run := "".join(chars))
            )
        else:
            yield match[0], f"[{len(match[0]):,} blanks]"
    yield from _marks(text[end:])


def _marks(text: str) -> Iterator[tuple[str, str]]:
    """Yield the parts of a text with only a few marks on a character, and those beyond."""
    if text.isascii():
        if text:
            yield text, text
        return
    start = 0
    marks = 0
    for at, char in enumerate(text):
        marks = marks + 1 if unicodedata.category(char) in ("Mn", "Me") else 0
        if marks > MAX_MARKS:
            if start < at:
                yield text[start:at], text[start:at]
            yield char, braces(char)
            start = at + 1
    if start < len(text):
        yield text[start:], text[start:]


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


class _Section:
    """The lines of a file of a diff."""

    def __init__(self) -> None:
        self._header = _Header()
        self._file = ShownFile("")
        self._in_hunks = False
        self._unseen: dict[str, None] = {}

    def ends_at(self, text: str) -> bool:
        """Return whether a line outside of hunks begins another file."""
        return text.startswith("diff --git ") or (self._in_hunks and text.startswith("--- "))

    def read(self, kind: str, text: str, old: int, new: int, width: int) -> bool:
        """Read a line; return whether it is shown."""
        self._in_hunks = self._in_hunks or kind == "@"
        if not kind and not self._in_hunks and self._header.read(text):
            return False
        file = self._file
        file.added += kind == "+"
        file.removed += kind == "-"
        self._unseen |= _unseen(text)
        if not width:
            file.hidden += 1
            return False
        shown = shown_code(text, width)
        file.lines.append(
            ShownLine(kind, shown.text, *(0, 0) if kind == "@" else (old, new), shown.cut)
        )
        return True

    def done(self) -> ShownFile:
        """Return the file, after its last line."""
        file = self._file
        header = self._header
        file.path = header.path or "?"
        file.notes = header.notes()
        if "(" in (mode := header.mode()):
            file.special.append(mode)
        if header.binary():
            file.special.append("binary")
        if self._unseen:
            file.notes.append(_invisible_note(self._unseen))
            file.special.append("with invisible characters")
        return file
