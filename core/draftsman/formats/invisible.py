r"""Characters that a reader does not see, or that change how other characters are shown.

This table is the only one: chats, mail, pages and terminals show these characters as `\u{200b}`,
and agents get text without them. They are control characters, which include the escape sequences
of terminals, separators of lines, overrides of the direction of text, surrogates, format
characters, fillers and tags. Where a language, an emoji or a flag needs one of them, it stays.

Blanks other than a space, characters of private use, and what languages need are `strict`
invisible only: in code they hide a difference.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import groupby
from typing import Final

_CONTROL: Final = "\0-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
FORMAT: Final = (
    "\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f\u2060-\u2064"
    "\u2066-\u206f\ufeff\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001"
)
"""Format characters of Unicode that are none of the others, as a class of a regular expression."""
_PRIVATE: Final = "\ue000-\uf8ff\U000f0000-\U000ffffd\U00100000-\U0010fffd"
_BLANKS: Final = "\xa0\u1680\u2000-\u200a\u202f\u205f\u2800\u3000"
_VARIATIONS: Final = "\u180b-\u180d\u180f\ufe00-\ufe0f"
_IDEOGRAPHIC: Final = "\U000e0100-\U000e01ef"
"""Variations of ideographs, as in names of people."""
_TAGS: Final = "\U000e0020-\U000e007f"
_IGNORED: Final = (
    f"\u034f\u115f\u1160\u17b4\u17b5\u180e\u2065\u3164\uffa0\ufff0-\ufff8\U0001d159{_VARIATIONS}"
    "\U000e0000-\U000e0fff"
)
"""Fillers, variations and others that Unicode asks to show as nothing."""
STRICT: Final = f"{_CONTROL}{FORMAT}{_PRIVATE}{_BLANKS}{_IGNORED}"
"""The strictly invisible characters, as a class of a regular expression."""
_UNSEEN: Final = f"{_CONTROL}{FORMAT}{_IGNORED}"
_OTHER_SCRIPT: Final = f"[^\0-\x7f{_BLANKS}{_UNSEEN}]"
_JOINERS: Final = "\u200c-\u200f\u061c"
_BREAKS: Final = "\u0e00-\u0fff\u1000-\u109f\u1780-\u17b3\u17b6-\u17ff"
"""Scripts without blanks, whose words a zero-width space separates."""
_NEEDED: Final = "|".join(
    (
        f"(?<={_OTHER_SCRIPT})[{_JOINERS}]",
        f"[{_JOINERS}](?={_OTHER_SCRIPT})",
        f"(?<=[{_BREAKS}])\u200b(?=[{_BREAKS}])",
        f'(?<=[^\0-"$-)+-/:-\x7f{_BLANKS}{_UNSEEN}])[{_VARIATIONS}](?![{_VARIATIONS}])',
        f"(?<=[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])[{_IDEOGRAPHIC}](?![{_IDEOGRAPHIC}])",
        "(?<=\U0001f3f4)[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f",
    )
)
"""What languages, emoji and the flags of regions need, beside the characters that need it."""
_RUN: Final = re.compile(f"[{_UNSEEN}]+")
_RUN_OR_LINES: Final = re.compile(f"[{_UNSEEN}\t\n]+")
_PART: Final = re.compile(f"(?P<needed>{_NEEDED})|[{_UNSEEN}\t\n]+")
"""A part of a run, which is found first as it is ten times as fast."""
_STRICT: Final = re.compile(f"[{STRICT}]+")
_NAMED: Final = {"\n": "\\n", "\t": "\\t"}
"""Escapes that every reader knows."""


def braces(text: str) -> str:
    r"""Return characters as `\u{200b}`, and equal ones in a row as `\u{200b}{12}`."""
    return "".join(
        _NAMED.get(char, f"\\u{{{ord(char):x}}}") + (f"{{{count}}}" if count > 1 else "")
        for char, count in ((char, len([*run])) for char, run in groupby(text))
    )


def escape_invisible(
    text: str,
    *,
    lines: bool = True,
    strict: bool = False,
    escape: Callable[[str], str] = braces,
) -> str:
    r"""Return the text with invisible characters escaped, such as `\u{1b}`.

    `lines`: line ends and tabs are kept, and `\r\n` is a line end. `strict`: also what some
    languages need, blanks, and characters of private use: a person decides on exactly this text.
    """
    if text.isascii() and text.isprintable():
        return text
    if strict:
        return _STRICT.sub(lambda match: escape(match[0]), text)
    pattern = _RUN if lines else _RUN_OR_LINES
    return pattern.sub(lambda run: _parts(run, escape), line_ends(text))


def _parts(run: re.Match[str], replace: Callable[[str], str]) -> str:
    """Return a run of invisible characters replaced, except what the text around it needs."""
    if run[0].isascii():
        return replace(run[0])
    shown = []
    for part in _PART.finditer(run.string, run.start()):
        if part.start() >= run.end():
            break
        end = min(part.end(), run.end())
        shown.append(part["needed"] or replace(run.string[part.start() : end]))
    return "".join(shown)


def line_ends(text: str) -> str:
    r"""Return the text with `\n` as the end of each line of a text of Windows or of HTTP."""
    return text.replace("\r\n", "\n")


def one_line(text: str) -> str:
    """Join the text into one line without invisible characters."""
    return escape_invisible(" ".join(text.split()))


def remove_invisible(text: str) -> str:
    """Return the text as a reader sees it; what languages and emoji need stays."""
    return _RUN.sub(lambda run: _parts(run, lambda _: ""), text)
