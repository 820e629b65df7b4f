"""Text of requests, agents and answers in Markdown and commits of a forge, without effects. Pure.

Mentions notify people, `Fixes #12` closes an issue at the merge, `[skip ci]` and trailers act on
the commit that a merge makes of a title or body, a line `/merge` may be a command, an image loads
its address when it is shown, a link may hide its own, and HTML or an open code block hides the next
parts. A zero-width space after the first character ends each of them, and is the same in code,
where a backslash or an entity would be shown. Forges look for mentions after Markdown: an
underscore may be emphasis, and `&#64;` is an `@`.
"""

from __future__ import annotations

import re
from typing import Final

from draftsman.formats.invisible import escape_invisible
from draftsman.formats.truncation import truncate
from draftsman.log import redact

ZERO_WIDTH: Final = "\u200b"
MARGIN: Final = 600
"""Characters after the limit that are searched for secrets, so that none is cut in two."""
_EFFECT: Final = re.compile(
    r"(?<![^\W_])@(?=\w|\Z)|[#](?=\d)|(?<![^\W_])[!&](?=\d)|(?<![^\W_])#(?=[A-Za-z])"
    r"|(?<=[Gg][Hh])-(?=\d)"
    r"|^[ \t>*+-]*/(?=[A-Za-z])"
    r"|\[(?=[^\]\n]{0,60}(?:skip|\bci\b|build|deploy|actions))|\bNO(?=[_-]?CI\b)"
    r"|^[ \t>*+-]*(?:[A-Za-z](?=[A-Za-z0-9]{0,40}(?:-[A-Za-z]{1,40}){1,6}[ \t]{0,9}:)"
    r"|B(?=REAKING[ -]CHANGE)|(?:c(?=c:)|[a-z](?=(?:ixes|loses|esolves|efs?|ug|ssue|ink):)))",
    re.MULTILINE | re.IGNORECASE,
)
"""What acts on the text of a commit as on that of a pull request, also in code."""
_CLOSES: Final = re.compile(
    r"\b(clos(?:e[sd]?|ing)|fix(?:e[sd]|ing)?|resolv(?:e[sd]?|ing)|implement(?:s|ed|ing)?)"
    r"(:?\s+(?:issues?\s+)?)(?=https?://)",
    re.IGNORECASE,
)
"""Keywords before a URL: of an issue, it would be closed."""
_MARKUP: Final = re.compile(
    r"&(?=#?\w{1,32};)|<(?=[A-Za-z/!?]|\Z)|\](?=[(\[:])"
    r"|^[ \t>*+\d.)-]*(?:`{3,}(?=[ \t]*[^`\s][^`\n]*$)|~{3,}(?=[ \t]*\S))",
    re.MULTILINE,
)
"""HTML, images, links with another text, and languages of code that are drawn or applied."""
_FENCE: Final = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})(.*)")


def inert(text: str, limit: int) -> str:
    """Return at most `limit` characters of a text without secrets and without effects."""
    return truncate(_without_effects(_end_each(_MARKUP, _plain(text, limit))), limit)


def _without_effects(text: str) -> str:
    return _end_each(_CLOSES, _end_each(_EFFECT, text))


def _end_each(pattern: re.Pattern[str], text: str) -> str:
    return pattern.sub(lambda match: match[0] + ZERO_WIDTH, text)


def line(text: str, limit: int) -> str:
    """Return an inert text in a single line."""
    return inert(" ".join(text[: limit + MARGIN].split()), limit)


def cell(text: str, limit: int) -> str:
    """Return an inert text for a cell of a table."""
    return line(text, limit).replace("\\", "\\\\").replace("|", "\\|")


def code(text: str, limit: int) -> str:
    """Return code for a cell of a table, delimited by more backticks than it has in a row."""
    text = _without_effects(" ".join(_plain(text, limit).split()))
    text = truncate(text, limit).replace("|", "\\|")
    ticks = "`" * (max(map(len, re.findall("`+", text)), default=0) + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"


def quote(text: str, limit: int) -> str:
    """Return an inert text as a quotation; an open code block ends with it."""
    return "\n".join(f"> {row}".rstrip() for row in inert(text, limit).strip().splitlines())


def block(text: str, limit: int) -> str:
    """Return an inert text whose code blocks are closed."""
    text = inert(text, limit).strip()
    fence = ""
    for row in text.split("\n"):  # the only line end of Markdown that is left
        if (match := _FENCE.match(row)) is None:
            continue
        if not fence:
            fence = match[1]
        elif match[1].startswith(fence) and not match[2].strip():
            fence = ""
    return f"{text}\n{fence}" if fence else text


def _plain(text: str, limit: int) -> str:
    """Return the beginning of a visible text without secrets."""
    return escape_invisible(redact(text[: limit + MARGIN]))
