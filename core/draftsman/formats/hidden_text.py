"""Text that a page of Markdown does not show, such as comments of HTML and white text. Pure."""

from __future__ import annotations

import re
from typing import Final

from draftsman.formats.invisible import remove_invisible

REMOVED: Final = "[hidden text was removed]"
_STYLE: Final = (
    r"(?<=\s)(?<!: )hidden(?=[\s=>/])|visibility\s{0,3}:\s{0,3}hidden"
    r"|display\s{0,3}:\s{0,3}none|(?:opacity|font-size|max-height)\s{0,3}:\s{0,3}0"
    r"|color\s{0,3}[:=]\s{0,3}[\"']?\s{0,3}(?:white|transparent|#fff|rgba?\(\s{0,3}255)"
    r"|text-indent\s{0,3}:\s{0,3}-|(?:left|top)\s{0,3}:\s{0,3}-\d{3}"
)
HIDING: Final = re.compile(_STYLE, re.IGNORECASE)
"""Finds the attributes that hide an element, in the text of its start tag."""
_HIDDEN: Final = re.compile(
    r"(?P<code>^ {0,3}(?P<fence>`{3,}|~{3,})[\s\S]*?(?:^ {0,3}(?P=fence)|\Z)|`[^`\n]{1,1000}`)"
    r"|<!--[\s\S]*?(?:-->|\Z)"
    r"|<(?P<raw>script|style|template|noscript)\b[\s\S]*?(?:</(?P=raw)\s{0,3}>|\Z)"
    rf"|<(?P<tag>[a-z][a-z0-9]{{0,20}})\b(?=[^>]{{0,1000}}(?:{_STYLE}))[^>]{{0,1000}}>"
    r"[\s\S]*?(?:</(?P=tag)\s{0,3}>|\Z)"
    r"|^ {0,3}\[[^\]\n]{1,200}\]:[ \t]{0,9}(?:#|<>)[^\n]*$",
    re.MULTILINE | re.IGNORECASE,
)
"""What is not shown; code, which comes first where it begins, shows all of it."""


def visible_text(text: str, *, markdown: bool) -> str:
    """Return the text that people see where it was written; a note stands for hidden parts.

    `markdown`: whether it was rendered there, so that HTML in it was not shown. Folded details are
    no hidden text: they have a title to open them.
    """
    text = remove_invisible(text)
    if not markdown:
        return text
    return _HIDDEN.sub(lambda match: match[0] if match["code"] else REMOVED, text)
