"""The pages of `docs/`, which the package contains, and the page of a command.

The page of a command is that of the first row of the index (`docs/README.md`) that has it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from draftsman import resources
from draftsman.errors import CommandHint, NotFound
from draftsman.formats.near_names import did_you_mean

INDEX: Final = "README"
_ROW: Final = re.compile(r"^\| [^|]+ \| ([^|]+) \| \[[^]]+\]\(([\w-]+)\.md(#[^)]*)?\) \|$", re.M)
_COMMAND: Final = re.compile(r"`draftsman ([^`]+)`")
_HEADING: Final = re.compile(r"(#+) (.+)")
_FENCE: Final = re.compile(r" *```")


def names() -> list[str]:
    """Return the names of all pages; raises FileNotFoundError if the package lacks them."""
    files = (file.name for file in resources.folder("docs").iterdir())
    return sorted(name.removesuffix(".md") for name in files if name.endswith(".md"))


def read(reference: str) -> str:
    """Return the Markdown of a page (`limits`, `docs/limits.md`) or section (`limits#rates`).

    Raises NotFound with the nearest names.
    """
    name, _, section = reference.partition("#")
    name = name.removeprefix("docs/").removesuffix(".md")
    if name not in names():
        raise _unknown(f"page {name!r}", name, names())
    text = resources.folder("docs").joinpath(f"{name}.md").read_text("utf-8")
    if not section:
        return text
    lines = text.splitlines(keepends=True)
    anchors = {anchor: (level, at) for level, anchor, at in _headings(lines)}
    if section not in anchors:
        raise _unknown(f"section {section!r} of the page {name}", section, anchors)
    level, start = anchors[section]
    ends = (at for other, _, at in _headings(lines) if at > start and other <= level)
    return "".join(lines[start : next(ends, None)])


def page_of(command: Sequence[str]) -> str | None:
    """Return the page of a command and its section: the row with most of its words, if any."""
    best, page = 0, None
    for cell, name, section in _ROW.findall(read(INDEX)):
        for line in _COMMAND.findall(cell):
            words = line.split()
            same = [word for word, other in zip(command, words, strict=False) if word == other]
            if words[: len(same)] == same and len(same) > best:
                best, page = len(same), f"{name}{section}"
    return page


def _headings(lines: Sequence[str]) -> Iterator[tuple[int, str, int]]:
    """Yield the level, the anchor and the line of each heading."""
    is_code = False
    for at, line in enumerate(lines):
        is_code ^= _FENCE.match(line) is not None
        if not is_code and (heading := _HEADING.match(line)):
            anchor = re.sub(r"[^\w\- ]", "", heading[2].strip().lower()).replace(" ", "-")
            yield len(heading[1]), anchor, at


def _unknown(what: str, word: str, known: Iterable[str]) -> NotFound:
    tail = did_you_mean(word, known, 2)
    return NotFound(f"there is no {what}{tail}", hint=CommandHint("help --page"))
