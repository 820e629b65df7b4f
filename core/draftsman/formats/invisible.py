"""Characters that a reader does not see, or that change how other characters are shown.

They are control characters, which include the escape sequences of terminals, separators of lines,
overrides of the direction of text, surrogates, and tags outside of a flag. Joiners, marks of
direction, variations and blanks other than a space, which some languages and emoji need, are
`strict` invisible only.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import groupby
from typing import Final

_LINES: Final = "\t\n"
_CONTROL: Final = "\0-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_TAGS: Final = "\U000e0020-\U000e007f"
_STRAY_TAGS: Final = f"(?<![\U0001f3f4{_TAGS}])[{_TAGS}]+"
_FORMAT: Final = (
    "\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f\u2060-\u2064"
    "\u2066-\u206f\ufeff\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001"
)
"""Format characters of Unicode that are none of the others."""
_PRIVATE: Final = "\ue000-\uf8ff\U000f0000-\U000ffffd\U00100000-\U0010fffd"
_BLANKS: Final = "\xa0\u1680\u2000-\u200a\u202f\u205f\u2800\u3000"
_IGNORED: Final = (
    "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufff8"
    "\U0001d159\U000e0000-\U000e0fff"
)
"""Fillers, variations and others that Unicode asks to show as nothing."""
STRICT: Final = f"{_CONTROL}{_FORMAT}{_PRIVATE}{_BLANKS}{_IGNORED}"
"""The strictly invisible characters, as a class of a regular expression."""
_INVISIBLE: Final = re.compile(f"[{_CONTROL}]+|{_STRAY_TAGS}")
_INVISIBLE_OR_LINES: Final = re.compile(f"[{_CONTROL}{_LINES}]+|{_STRAY_TAGS}")
_STRICT: Final = re.compile(f"[{STRICT}]+")
REPLACEMENT: Final = "\ufffd"


def replace_invisible(text: str) -> str:
    r"""Return the text with a replacement for each invisible character; `\r` ends a line."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _INVISIBLE.sub(lambda match: REPLACEMENT * len(match[0]), text)


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

    `lines`: line ends and tabs are kept. `strict`: also what some languages need, fillers, and
    characters of private use: a person decides on exactly this text.
    """
    pattern = _STRICT if strict else _INVISIBLE if lines else _INVISIBLE_OR_LINES
    return pattern.sub(lambda match: escape(match[0]), text)


def one_line(text: str) -> str:
    """Join the text into one line without invisible characters."""
    return escape_invisible(" ".join(text.split()))


_JOINERS: Final = "\u200c-\u200f\u061c"
_OTHER_SCRIPT: Final = f"[^\0-\x7f{_JOINERS}]"
_BESIDE_OTHER_SCRIPTS: Final = f"(?<={_OTHER_SCRIPT})[{_JOINERS}]|[{_JOINERS}](?={_OTHER_SCRIPT})"
_VARIATIONS: Final = "[\ufe00-\ufe0f]{2,}|[\U000e0100-\U000e01ef]"
_REMOVED: Final = re.compile(
    f"(?P<kept>{_BESIDE_OTHER_SCRIPTS})|[{_CONTROL}{_FORMAT}]|{_STRAY_TAGS}|{_VARIATIONS}"
)


def remove_invisible(text: str) -> str:
    """Return the text as a reader sees it; joiners of other scripts and of emoji stay."""
    return _REMOVED.sub(lambda match: match["kept"] or "", text)
